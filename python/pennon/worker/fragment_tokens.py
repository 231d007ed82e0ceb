"""The opaque texts of a fragment: what all of its tasks share, and what each one reads."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

from pennon.errors import MalformedMessage
from pennon.execution import Fragment, LeafRead, Query, Relation
from pennon.worker.tokens import ScanToken, Split, schema_of, schema_text

if TYPE_CHECKING:
    from collections.abc import Sequence


@dataclass(frozen=True, slots=True)
class FragmentToken:
    """What all tasks of a fragment have in common.

    Args:
        scans: The relations, without what is read of them.
        query: What is computed over them.
    """

    scans: tuple[ScanToken, ...]
    query: Query

    def to_json(self) -> str:
        """Write the token."""
        return json.dumps(
            {
                "scans": [scan.to_json() for scan in self.scans],
                "sql": self.query.sql,
                "schema": schema_text(self.query.schema),
            }
        )

    @classmethod
    def from_json(cls, text: str) -> FragmentToken:
        """Read the token; every task brings the same."""
        return _fragment_token(text)

    def fragment(self, task: str) -> Fragment:
        """Put together what one task computes.

        Args:
            task: The text of ``task_text``.
        """
        try:
            splits = json.loads(task)["relations"]
        except (json.JSONDecodeError, KeyError, TypeError) as error:
            raise MalformedMessage(why="the text task is not one of the worker's") from error
        relations = tuple(
            relation(scan, Split.from_json(json.dumps(each)))
            for scan, each in zip(self.scans, splits, strict=True)
        )
        return Fragment(relations, self.query)


@lru_cache(maxsize=32)
def _fragment_token(text: str) -> FragmentToken:
    try:
        stored = json.loads(text)
        scans = tuple(ScanToken.from_json(each) for each in stored["scans"])
        return FragmentToken(scans, Query(str(stored["sql"]), schema_of(stored["schema"])))
    except (json.JSONDecodeError, KeyError, TypeError) as error:
        raise MalformedMessage(why="the text fragment is not one of the worker's") from error


def task_text(relations: Sequence[Sequence[str]]) -> str:
    """Write what one task reads.

    Args:
        relations: For each relation the texts of its splits.

    Example:
        >>> task_text([['{"leaf":"x","version":"3","residual":-1}'], []])
        '{"relations":[[{"leaf":"x","version":"3","residual":-1}],[]]}'
    """
    lists = ",".join(f"[{','.join(splits)}]" for splits in relations)
    return f'{{"relations":[{lists}]}}'


def relation(scan: ScanToken, splits: Sequence[Split]) -> Relation:
    """Put together what is read of a scan."""
    leaves = tuple(
        LeafRead(
            split.location,
            split.version,
            scan.residuals[split.residual] if split.residual >= 0 else None,
            split.fragments,
        )
        for split in splits
    )
    return Relation(scan.location, leaves, scan.schema, scan.namespace_schema, scan.storage_options)
