"""The driver's operations: request message and handler of each."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from pennon.catalog.configured_catalog import (
    Catalog,
    ExecutionOptions,
    check_catalog_options,
    setting_name,
)
from pennon.execution import BatchStream
from pennon.worker.messages import messages as m
from pennon.worker.messages import messages as w
from pennon.worker.messages import scan_messages as s
from pennon.worker.messages.messages import (
    FindBatchEnd,
    LoadChanges,
    PlanBatch,
    ReadMetadata,
    StartStream,
)
from pennon.worker.messages.scan_messages import DeriveKeys
from pennon.worker.requests import data_plane, key_derivation
from pennon.worker.requests import driver_requests as driver
from pennon.worker.requests import driver_requests as streams
from pennon.worker.requests import scan_requests as scans
from pennon.worker.requests import write_requests as writes
from pennon.worker.requests.driver_requests import load_changes, read_metadata
from pennon.worker.wire.framing import STORAGE_OPTION_VALUES
from pennon.worker.wire.json_fields import decode, encode

if TYPE_CHECKING:
    from pennon.worker.wire.framing import FrameSocket

__all__ = ["Handler"]

# The type of a request's handler.

Handler = Callable[[Mapping[str, object], "FrameSocket"], None]
"""Answers one request: sends the reply's frames itself, raises to have an ``X`` frame sent."""


_DRIVER: tuple[tuple[Any, Callable[[Any], Any]], ...] = (
    (m.RewriteStatements, driver.rewrite_statements),
    (m.ListNamespaces, driver.list_namespaces),
    (m.DescribeNamespace, driver.describe_namespace),
    (m.CreateNamespace, driver.create_namespace),
    (m.DropNamespace, driver.drop_namespace),
    (m.AlterNamespace, driver.alter_namespace),
    (m.ListTables, driver.list_tables),
    (m.LoadTables, driver.load_tables),
    (m.LoadTable, driver.load_table),
    (LoadChanges, load_changes),
    (m.LoadSearch, driver.load_search),
    (m.PlanNearest, driver.plan_nearest),
    (m.CreateTable, driver.create_table),
    (m.StageTable, driver.stage_table),
    (m.PublishTable, driver.publish_table),
    (m.DiscardTable, driver.discard_table),
    (m.DropTable, driver.drop_table),
    (m.RenameTable, driver.rename_table),
    (m.AlterTable, driver.alter_table),
    (s.PlanScan, scans.plan_scan),
    (s.ListSplits, scans.list_splits),
    (s.PackSplits, scans.pack_splits),
    (s.PruneSplits, scans.prune_splits),
    (s.ExplainScan, scans.explain_scan),
    (s.SummarizeColumns, scans.summarize_columns),
    (s.PartitionTuples, scans.partition_tuples),
    (StartStream, streams.start_stream),
    (FindBatchEnd, streams.find_batch_end),
    (PlanBatch, streams.plan_batch),
    (w.PlanWrite, writes.plan_write),
    (w.CommitWrite, writes.commit_write),
    (w.AbortWrite, writes.abort_write),
    (w.CheckDelete, writes.check_delete),
    (w.CheckChange, writes.check_change),
    (w.DeleteRows, writes.delete_rows),
    (m.ListProcedures, driver.list_procedures),
    (m.Call, driver.call),
)

REPEATABLE: tuple[Any, ...] = (
    m.RewriteStatements,
    m.ListNamespaces,
    m.DescribeNamespace,
    m.ListTables,
    m.LoadTables,
    m.LoadTable,
    LoadChanges,
    m.LoadSearch,
    m.PlanNearest,
    s.PlanScan,
    s.ListSplits,
    s.PackSplits,
    s.PruneSplits,
    s.ExplainScan,
    s.SummarizeColumns,
    s.PartitionTuples,
    DeriveKeys,
    w.PlanWrite,
    w.CheckDelete,
    w.CheckChange,
    m.ListProcedures,
    s.Read,
    s.RunFragment,
    ReadMetadata,
    StartStream,
    FindBatchEnd,
    PlanBatch,
)
"""Requests that change nothing: the jar sends one again whose worker was lost."""


def _answer(
    message: Any,
    answer: Callable[[Any], Any],
    request: Mapping[str, object],
    frames: FrameSocket,
) -> None:
    decoded = decode(message, request)
    if isinstance(decoded, m.CatalogRequest):
        STORAGE_OPTION_VALUES.remember(decoded.catalog.storage)
        STORAGE_OPTION_VALUES.remember(decoded.catalog.namespace)
        _check_options(decoded.catalog)
    reply = answer(decoded)
    if not isinstance(reply, tuple):
        frames.send_json(encode(reply))
        return
    body, rows = reply
    frames.send_json(encode(body))
    send_table(rows, frames)


def _check_options(catalog: Catalog) -> None:
    """Refuse what the session states of a catalog and means nothing."""
    check_catalog_options(catalog.options, catalog.name)
    catalog.check_implementation()
    stated = {setting_name(catalog.name, name): value for name, value in catalog.options.items()}
    ExecutionOptions.of_catalog(catalog.name, stated)


def send_table(rows: pa.Table, frames: FrameSocket) -> None:
    """Send a table as the Arrow stream behind a reply."""
    data_plane.send_reply(BatchStream(rows.schema, iter(rows.to_batches())), frames)


HANDLERS: Mapping[str, Handler] = MappingProxyType(
    {
        **{message.op: partial(_answer, message, answer) for message, answer in _DRIVER},
        DeriveKeys.op: key_derivation.derive,
        ReadMetadata.op: read_metadata,
    }
)
