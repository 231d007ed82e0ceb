"""What was worked out of table versions, kept for all threads of a process: one cache, one key.

A version of a table never changes, but a path is no identity: a table can be dropped and made anew
at its place, and two sessions may read one path with different credentials. Every key therefore
states location, version, table identity and storage identity.
"""

from pennon.caching.cache import (
    LOOK,
    Cache,
    CarriedOver,
    PerObject,
    TableKey,
    TextCache,
    combined_identity,
    limit_caches,
    log_figures,
    storage_identity,
    version_identity,
    version_time,
)

__all__ = [
    "LOOK",
    "Cache",
    "CarriedOver",
    "PerObject",
    "TableKey",
    "TextCache",
    "combined_identity",
    "limit_caches",
    "log_figures",
    "storage_identity",
    "version_identity",
    "version_time",
]
