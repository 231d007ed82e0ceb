"""Namespaces of the specification's older draft, read as tables without a migration."""

from pennon.draft.draft_snapshot import DraftSnapshot, open_snapshot

__all__ = ["DraftSnapshot", "open_snapshot"]
