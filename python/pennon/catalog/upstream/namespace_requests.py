"""Requests of ``lance_namespace``, which are models or plain mappings, and its error classes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from lance_namespace import errors as upstream_errors

from pennon.errors import PennonError, StorageFailure
from pennon.manifest.format.names import SEPARATOR

__all__ = ["changed_names", "refused_inside", "upstreams_errors", "value_of", "with_values"]


def changed_names(request: Any) -> Iterator[list[str] | None]:
    """Give every name that a request changes: its own, a new one, those of a batch."""
    yield value_of(request, "id")
    target = value_of(request, "new_namespace_id")
    if target is not None:
        yield target
    for entry in value_of(request, "entries") or ():
        yield from changed_names(entry)
    for operation in value_of(request, "operations") or ():
        named = operation if isinstance(operation, Mapping) else operation.model_dump()
        for field in named.values():
            if isinstance(field, Mapping):
                yield from changed_names(field)


def value_of(request: Any, name: str) -> Any:
    """Give a value of a request; None where it has none."""
    return request.get(name) if isinstance(request, Mapping) else getattr(request, name, None)


def with_values(request: Any, changed: Mapping[str, Any]) -> Any:
    """Give a request with some values changed."""
    if isinstance(request, Mapping):
        return {**request, **changed}
    return request.model_copy(update=dict(changed))


@contextmanager
def upstreams_errors() -> Iterator[None]:
    """Say Pennon's errors as the interface does."""
    try:
        yield
    except StorageFailure as error:
        raise upstream_errors.ServiceUnavailableError(str(error)) from error
    except PennonError as error:
        raise upstream_errors.InvalidTableStateError(str(error)) from error


def refused_inside(
    operation: str, name: tuple[str, ...], location: str
) -> upstream_errors.LanceNamespaceError:
    """Make the error of a change below a partitioned namespace.

    Args:
        operation: What was asked.
        name: Of what.
        location: The partitioned namespace that it belongs to.
    """
    where = SEPARATOR.join(name) or "the root"
    message = (
        f"Cannot {operation} {where}: it belongs to the partitioned namespace at {location}, whose"
        " partition values and versions this operation would not keep. Write through Spark SQL, or"
        " through Pennon's own commands."
    )
    return upstream_errors.UnsupportedOperationError(message)
