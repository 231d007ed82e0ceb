"""A leaf's columns and its namespace's: ids, promotion, reconciliation, upgrades."""
