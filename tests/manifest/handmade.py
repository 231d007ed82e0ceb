"""A partitioned namespace made with pylance alone, after the specification's text.

No part of Pennon makes it, so that reading it checks Pennon against the format and not against
itself. It is the namespace of Appendix C with real leaves, and what else a foreign writer may
leave there:

| leaf | partition | table row | table_version rows | read at |
|---|---|---|---|---|
| v1$k7m2… | 2025-12-10 | NULL | $1 … $10, the last detached | the detached version |
| v1$w1x2… | 2025-12-11 | NULL | none | latest of main |
| v2$e9f0…$m7n8… | 2025, US | detached version | $1 (main) | the detached version |
| v2$e9f0…$n1u2… | 2025, NULL | version 2 | $1 | version 2, main has moved on |

A foreign namespace ``sales`` with a table, a row of an unknown type and an unknown column
``foreign_note`` stand beside them. Leaves of v1 state no ``lance:field_id``, those of v2 do.
"""

from __future__ import annotations

import datetime as dt
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa

SALES_EARLY = "v1$k7m2n9p4q8r5s3t6$dataset"
SALES_LATE = "v1$w1x2y3z4a5b6c7d8$dataset"
US = "v2$e9f0g1h2i3j4k5l6$m7n8o9p0q1r2s3t4$dataset"
NOWHERE = "v2$e9f0g1h2i3j4k5l6$n1u2l3l4c5o6u7n8$dataset"

LEAF_SCHEMA = pa.schema(
    [
        pa.field("id", pa.int64(), nullable=False),
        pa.field("event_date", pa.date32()),
        pa.field("country", pa.utf8()),
    ]
)
METADATA = json.loads(
    (Path(__file__).parent.parent / "golden" / "appendix_a.json").read_text(encoding="utf-8")
)


@dataclass(frozen=True)
class Handmade:
    """What was made, and what a reader has to find.

    Args:
        location: The namespace.
        read_versions: By leaf, the Lance version to read; None for the latest of main.
        rows: By leaf, the rows of that version.
    """

    location: str
    read_versions: dict[str, int | None]
    rows: dict[str, list[dict[str, object]]]

    @property
    def all_rows(self) -> list[dict[str, Any]]:
        """The rows of the whole table."""
        return [row for leaf in self.rows.values() for row in leaf]


def appendix_c(root: Path, *, with_read_version: bool = True) -> Handmade:
    """Make the namespace below ``root``; without ``read_version`` it is in weak mode."""
    location = root / "handmade"
    early, late = dt.date(2025, 12, 10), dt.date(2025, 12, 11)
    rows = {
        SALES_EARLY: [_row(1, early, "US"), _row(2, early, None), _row(3, early, "FR")],
        SALES_LATE: [_row(4, late, "US"), _row(5, late, "DE")],
        US: [_row(6, early, "US"), _row(7, dt.date(2025, 1, 1), "US")],
        NOWHERE: [_row(8, late, None)],
    }
    versions: dict[str, int | None] = {
        SALES_EARLY: _leaf(location, SALES_EARLY, rows[SALES_EARLY][:1], rows[SALES_EARLY][1:]),
        SALES_LATE: None,
        US: _leaf(location, US, rows[US][:1], rows[US][1:], state_ids=True),
        NOWHERE: _leaf(location, NOWHERE, rows[NOWHERE], [], state_ids=True),
    }
    _leaf(location, SALES_LATE, rows[SALES_LATE], [])
    moved_on = lance.dataset(_directory(location, NOWHERE))
    moved_on.insert(pa.Table.from_pylist([_row(99, late, None)], LEAF_SCHEMA))
    _manifest(location, versions, with_read_version=with_read_version)
    if not with_read_version:
        versions = dict.fromkeys(versions)
        rows = {
            leaf: lance.dataset(_directory(location, leaf)).to_table().to_pylist() for leaf in rows
        }
    return Handmade(str(location), versions, rows)


def _row(identity: int, event_date: dt.date, country: str | None) -> dict[str, object]:
    return {"id": identity, "event_date": event_date, "country": country}


def _directory(location: Path, leaf: str) -> str:
    return str(location / f"b4a3c2d1_{leaf}")


def _leaf(
    location: Path,
    leaf: str,
    main: list[dict[str, object]],
    detached: list[dict[str, object]],
    *,
    state_ids: bool = False,
) -> int:
    """Write a leaf: some rows on main, the others in a detached commit; give the last version."""
    dataset = lance.write_dataset(
        pa.Table.from_pylist(main, LEAF_SCHEMA), _directory(location, leaf)
    )
    if state_ids:
        dataset.update_field_metadata(
            {name: {"lance:field_id": str(at)} for at, name in enumerate(LEAF_SCHEMA.names)}
        )
    if not detached:
        return int(dataset.version)
    fragments = lance.fragment.write_fragments(
        pa.Table.from_pylist(detached, LEAF_SCHEMA), dataset, mode="append"
    )
    committed = lance.LanceDataset.commit(
        dataset,
        lance.LanceOperation.Append(fragments),
        read_version=dataset.version,
        detached=True,
    )
    return int(committed.version)


def _manifest(location: Path, versions: dict[str, int | None], *, with_read_version: bool) -> None:
    columns = [
        pa.field(
            "object_id",
            pa.utf8(),
            nullable=False,
            metadata={"lance-schema:unenforced-primary-key:position": "0"},
        ),
        pa.field("object_type", pa.utf8(), nullable=False),
        pa.field("location", pa.utf8()),
        pa.field("metadata", pa.utf8()),
        pa.field("base_objects", pa.list_(pa.field("object_id", pa.utf8()))),
        pa.field("foreign_note", pa.utf8()),
        pa.field("read_version", pa.uint64()),
        pa.field("partition_field_event_date", pa.date32()),
        pa.field("partition_field_event_year", pa.int32()),
        pa.field("partition_field_country", pa.utf8()),
    ]
    objects = _objects(versions)
    if not with_read_version:
        columns = [column for column in columns if column.name != "read_version"]
        objects = [row for row in objects if row["object_type"] != "table_version"]
    dataset = lance.write_dataset(
        pa.Table.from_pylist(objects, pa.schema(columns)), str(location / "__manifest")
    )
    dataset.update_metadata({key: json.dumps(value) for key, value in METADATA.items()})


def _objects(versions: dict[str, int | None]) -> list[dict[str, object]]:
    early, late = dt.date(2025, 12, 10), dt.date(2025, 12, 11)
    objects = [
        manifest_row("v1", "namespace"),
        manifest_row("v1$k7m2n9p4q8r5s3t6", "namespace", event_date=early),
        _table(SALES_EARLY, event_date=early),
        *(
            manifest_row(f"{SALES_EARLY}${n}", "table_version", read_version=1)
            # Numeric order decides: as text $9 comes after $10.
            for n in range(1, 10)
        ),
        manifest_row(f"{SALES_EARLY}$10", "table_version", read_version=versions[SALES_EARLY]),
        manifest_row("v1$w1x2y3z4a5b6c7d8", "namespace", event_date=late),
        _table(SALES_LATE, event_date=late),
        manifest_row("v2", "namespace"),
        manifest_row("v2$e9f0g1h2i3j4k5l6", "namespace", event_year=2025),
        manifest_row(
            "v2$e9f0g1h2i3j4k5l6$m7n8o9p0q1r2s3t4", "namespace", event_year=2025, country="US"
        ),
        _table(US, read_version=versions[US], event_year=2025, country="US"),
        manifest_row(f"{US}$1", "table_version", read_version=1),
        manifest_row("v2$e9f0g1h2i3j4k5l6$n1u2l3l4c5o6u7n8", "namespace", event_year=2025),
        _table(NOWHERE, read_version=versions[NOWHERE], event_year=2025),
        manifest_row(f"{NOWHERE}$1", "table_version", read_version=1),
        manifest_row("sales", "namespace"),
        {**_table("sales$orders"), "foreign_note": "not a leaf"},
        {**manifest_row("v1$k7m2n9p4q8r5s3t6$view", "view"), "foreign_note": "kept"},
    ]
    names = {name for row in objects for name in row}
    return [{name: row.get(name) for name in names} for row in objects]


def published(root: Path, *, in_schema: bool = False, strong: bool = True) -> str:
    """Make a table as the published specification has it, whose leaves lack what they are cut by.

    Read versions, branches and tags stand on the table rows; there are no ``table_version`` rows.
    The leaves of US, DE, FR and NULL have the ids 1 to 4 there. In strong mode main has moved on:
    behind each there is an id ten times as high. US is read on a branch, DE at a tag.

    Args:
        root: Below which it is made.
        in_schema: Whether the properties stand in the Arrow schema's metadata, as Daft has them.
        strong: Whether there are read versions.

    Returns:
        Its location.
    """
    location = root / "published"
    objects = [manifest_row("v1", "namespace")]
    for at, country in enumerate(("US", "DE", "FR", None)):
        object_id = f"v1$part{at}$dataset"
        leaf = lance.write_dataset(_ids(at + 1), str(location / f"b4a3c2d1_{object_id}"))
        row = _table(object_id, country=country)
        if strong:
            branch, tag = "audit" if country == "US" else None, "ok" if country == "DE" else None
            row |= {"read_version": None if tag else leaf.version}
            row |= {"read_branch": branch, "read_tag": tag}
            if branch is not None:
                leaf.create_branch(branch)
            if tag is not None:
                leaf.tags.create(tag, leaf.version)
            lance.write_dataset(_ids(10 * (at + 1)), leaf.uri, mode="append")
        objects += [manifest_row(f"v1$part{at}", "namespace", country=country), row]
    kinds = {
        **dict.fromkeys(("object_id", "object_type", "location", "metadata"), pa.utf8()),
        "base_objects": pa.list_(pa.field("object_id", pa.utf8())),
        "partition_field_country": pa.utf8(),
    }
    if strong:
        kinds |= {"read_version": pa.uint64(), "read_branch": pa.utf8(), "read_tag": pa.utf8()}
    country = METADATA["partition_spec_v2"]["fields"][1]
    properties = {
        "partition_spec_v1": json.dumps({"id": 1, "fields": [country]}),
        "schema": json.dumps(METADATA["schema"]),
    }
    rows = pa.Table.from_pylist(objects, pa.schema(kinds, properties if in_schema else None))
    manifest = lance.write_dataset(rows, str(location / "__manifest"))
    if not in_schema:
        manifest.update_metadata({**properties})
    return str(location)


def _ids(identity: int) -> pa.Table:
    rows = [_row(identity, dt.date(2025, 12, 10), None)]
    return pa.Table.from_pylist(rows, LEAF_SCHEMA).drop_columns("country")


def manifest_row(
    object_id: str, object_type: str, *, read_version: int | None = None, **values: object
) -> dict[str, object]:
    """Write a row of ``__manifest`` as the specification has it; ``values``: partition fields'."""
    return {
        "object_id": object_id,
        "object_type": object_type,
        "location": None,
        "metadata": "{}",
        "read_version": read_version,
        **{f"partition_field_{name}": value for name, value in values.items()},
    }


def _table(
    object_id: str, *, read_version: int | None = None, **values: object
) -> dict[str, object]:
    made = manifest_row(object_id, "table", read_version=read_version, **values)
    return {**made, "location": f"b4a3c2d1_{object_id}"}
