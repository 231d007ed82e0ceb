"""How tables are stored: as partitioned namespaces, plain datasets or in the older draft's way.

Each of them is a ``StoredTable``; who has one need not ask which.
"""

from pennon.catalog.layouts.stored_table import StagedRows, StoredTable
from pennon.catalog.layouts.stored_tables import STORED_TABLES, stored_table

__all__ = ["STORED_TABLES", "StagedRows", "StoredTable", "stored_table"]
