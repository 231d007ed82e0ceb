"""What a commit costs after many commits: CPU per commit, fragments and bytes of ``__manifest``.

    make bench-commits ARGS="--commits 1000 --partitions 4"

Every commit appends one row to one of the partitions, as a writer of small batches does. The cost
has to be flat: what one commit leaves behind must not be paid for by all that follow. With
``--max-age-ms`` versions expire by themselves, as ``history.expire.max-snapshot-age-ms`` says. The
CPU is that of the whole process, what runs behind the commits included.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from pathlib import Path

import lance
import pyarrow as pa
from tests.present import present

from pennon.leaf import WriteTarget, write_partitions
from pennon.maintenance.background import keep_behind
from pennon.manifest import Snapshot, create
from pennon.spec import NamespaceSchema, PartitionField, PartitionSpec
from pennon.transaction import Committed, Transaction
from pennon.transforms.registry import IDENTITY

SCHEMA = pa.schema({"id": pa.int64(), "part": pa.int32()})


def made(folder: str, properties: dict[str, str] | None = None) -> Snapshot:
    """Make the empty table."""
    schema = NamespaceSchema.with_fresh_ids(SCHEMA)
    column = present(schema.field_by_path(["part"]))
    field = PartitionField("part", (column.id,), IDENTITY, None, column.field.type)
    return create(f"{folder}/commits", schema, PartitionSpec(1, (field,)), properties)


def commit(snapshot: Snapshot, number: int, partitions: int) -> Snapshot:
    """Append one row."""
    row = pa.record_batch({"id": [number], "part": [number % partitions]}, schema=SCHEMA)
    transaction = Transaction(snapshot)
    staged = write_partitions([row], WriteTarget(snapshot.location, snapshot.version, 1))
    transaction.append(staged)
    outcome = transaction.commit()
    if not isinstance(outcome, Committed):
        message = f"commit {number} was refused: {outcome}"
        raise SystemExit(message)
    keep_behind(snapshot.location, [partition.object_id for partition in staged], {})
    return outcome.snapshot


def report(snapshot: Snapshot, number: int, cpu: float, seconds: float) -> None:
    """Print one line of the table."""
    manifest = lance.dataset(f"{snapshot.location}/__manifest")
    files = [path for path in Path(manifest.uri).rglob("*") if path.is_file()]
    megabytes = sum(path.stat().st_size for path in files) / 1e6
    fragments = len(manifest.get_fragments())
    sys.stdout.write(
        f"{number:>8} {cpu:>11.3f} {seconds:>11.3f} {fragments:>10} {megabytes:>9.1f}"
        f" {len(files):>7}\n"
    )
    sys.stdout.flush()


def main() -> None:
    """Run the commits and print a line for each block."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--commits", type=int, default=1000)
    parser.add_argument("--partitions", type=int, default=4)
    parser.add_argument("--max-age-ms", type=int, help="versions expire when they are older")
    options = parser.parse_args()
    kept = {"history.expire.min-snapshots-to-keep": "100"}
    if options.max_age_ms is not None:
        kept["history.expire.max-snapshot-age-ms"] = str(options.max_age_ms)
    block = max(1, options.commits // 10)
    sys.stdout.write(" commits  CPU s/each wall s/each  fragments        MB   files\n")
    with tempfile.TemporaryDirectory() as folder:
        snapshot = made(folder, kept)
        cpu, clock = time.process_time(), time.perf_counter()
        for number in range(1, options.commits + 1):
            snapshot = commit(snapshot, number, options.partitions)
            if number % block == 0:
                spent, passed = time.process_time() - cpu, time.perf_counter() - clock
                report(snapshot, number, spent / block, passed / block)
                cpu, clock = time.process_time(), time.perf_counter()


if __name__ == "__main__":
    main()
