"""Which Spark the tests run on."""

from __future__ import annotations

import pyspark

SPARK = tuple(int(part) for part in pyspark.__version__.split(".")[:2])
