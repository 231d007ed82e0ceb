"""What a session says of the execution of queries that read the tables of its catalogs."""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING, Self

from pennon.catalog.configured_catalog import setting_name
from pennon.errors import BytesUnknown, ExecutionUnknown
from pennon.settings import (
    EXECUTION,
    ONE_EXECUTOR_BYTES,
    ONE_TASK_BYTES,
    REPLICATED_BYTES,
    Setting,
    amount_of_bytes,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

__all__ = ["ExecutionOptions"]


@dataclass(frozen=True, slots=True)
class ExecutionOptions:
    """Who computes what of a query.

    Args:
        in_workers: Whether the workers take part.
        one_task_bytes: Of all inputs of a query, for one task to compute it; 0 for none.
        one_executor_bytes: Of all inputs, for one executor to compute it with all of its cores.
        replicated_bytes: Of the inputs of a join's side, for each worker to evaluate it for itself.
    """

    in_workers: bool
    one_task_bytes: int
    one_executor_bytes: int
    replicated_bytes: int

    @classmethod
    def of_catalog(cls, catalog: str, settings: Mapping[str, str]) -> Self:
        """Read what is said of one catalog.

        Args:
            catalog: Its name.
            settings: The session's, by their names; others may be among them.

        Raises:
            ExecutionUnknown: Neither the workers nor Spark are named.
            BytesUnknown: A limit is no number of bytes.

        Example:
            >>> settings = {"spark.sql.catalog.lance.execution.oneTaskBytes": "1k"}
            >>> ExecutionOptions.of_catalog("lance", settings).one_task_bytes
            1024
        """
        name = setting_name(catalog, EXECUTION.name)
        executed_by = settings.get(name, str(EXECUTION.default))
        if executed_by.strip().lower() not in ("worker", "spark"):
            raise ExecutionUnknown(setting=name, value=executed_by)
        return cls(
            executed_by.strip().lower() == "worker",
            _bytes_of(catalog, ONE_TASK_BYTES, settings),
            _bytes_of(catalog, ONE_EXECUTOR_BYTES, settings),
            _bytes_of(catalog, REPLICATED_BYTES, settings),
        )

    @classmethod
    def of_catalogs(cls, catalogs: Iterable[str], settings: Mapping[str, str]) -> Self:
        """Read what holds for a query that reads tables of several catalogs, of at least one.

        All of them have to leave it to the workers, and the smallest limits hold.
        """
        return reduce(cls._beside, (cls.of_catalog(catalog, settings) for catalog in catalogs))

    def _beside(self, other: Self) -> Self:
        return type(self)(
            self.in_workers and other.in_workers,
            min(self.one_task_bytes, other.one_task_bytes),
            min(self.one_executor_bytes, other.one_executor_bytes),
            min(self.replicated_bytes, other.replicated_bytes),
        )


def _bytes_of(catalog: str, setting: Setting, settings: Mapping[str, str]) -> int:
    name = setting_name(catalog, setting.name)
    stated = settings.get(name, str(setting.default))
    amount = amount_of_bytes(stated)
    if amount is None:
        raise BytesUnknown(setting=name, value=stated)
    return amount
