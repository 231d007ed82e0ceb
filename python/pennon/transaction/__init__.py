"""Staged changes → conflicts → one strong or weak commit, as a value."""

from pennon.transaction.concurrency.outcome import Committed, Conflicted, Outcome, Retryable
from pennon.transaction.transaction import Transaction

__all__ = ["Committed", "Conflicted", "Outcome", "Retryable", "Transaction"]
