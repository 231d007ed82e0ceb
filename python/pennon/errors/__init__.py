"""Every error a user can meet, one class per condition, and its text.

A message has the form ``[CONDITION] Cannot <verb> <object>: <why, with the values>. <What to do>.``
Parameters are values, never sentences, and never a storage option.
"""

from pennon.errors.conditions import *  # noqa: F403 - all are public, and named once
from pennon.errors.process_conditions import *  # noqa: F403 - all are public, and named once
from pennon.errors.statement_conditions import *  # noqa: F403 - all are public, and named once
