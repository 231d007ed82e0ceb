"""An expression of Spark as a plan carries it: a tree that is read once, and its type.

Everybody who asks gets the same tree. Nobody may change it, and making a part of it the child of
another node is a change: sqlglot's nodes know their parents. What builds on a part takes a copy.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from sqlglot import exp

from pennon.errors import PredicateSyntaxError, PredicateTooDeep
from pennon.predicate.parse import parse_with_lists
from pennon.predicate.semantics import Declined
from pennon.predicate.spark_dialect import SparkSql

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True)
class SparkExpression:
    """An expression over columns that are named ``c`` and their attribute's number.

    Args:
        source: Spark SQL, or its tree; None for an expression that Spark could not write.
        type: Its type in Spark, as Arrow's; None where it is not stated, or has none.

    Example:
        >>> total = SparkExpression("(`c1` + `c2`) * `c1`")
        >>> sorted(total.columns), total.column, SparkExpression("`c1`").column
        (['c1', 'c2'], None, 'c1')
    """

    source: str | exp.Expr | None
    type: pa.DataType | None = None

    def __str__(self) -> str:
        """Write it as people are shown it."""
        if isinstance(self.source, exp.Expr):
            return self.source.sql(dialect=SparkSql)
        return self.source or "an expression without a text"

    @cached_property
    def tree(self) -> exp.Expr | None:
        """The tree; None where it has no text, or one that cannot be read."""
        if not isinstance(self.source, str):
            return self.source
        try:
            return parse_with_lists(self.source)
        except (PredicateSyntaxError, PredicateTooDeep):
            return None

    @property
    def stated_tree(self) -> exp.Expr:
        """The tree.

        Raises:
            Declined: It has no text, or one that cannot be read.
        """
        if self.tree is None:
            raise Declined(why=str(self))
        return self.tree

    @cached_property
    def columns(self) -> frozenset[str] | None:
        """The names of the columns in it; None as ``tree``."""
        if self.tree is None:
            return None
        return frozenset(node.parts[0].name for node in self.tree.find_all(exp.Column))

    @property
    def column(self) -> str | None:
        """The name of the column that it is; None for any other, and for a field of a struct."""
        tree = self.tree
        return tree.name if isinstance(tree, exp.Column) and len(tree.parts) == 1 else None

    @classmethod
    def of_column(cls, name: str, data_type: pa.DataType | None) -> SparkExpression:
        """Make the expression that is a column."""
        return cls(exp.column(name, quoted=True), data_type)


UNWRITTEN = SparkExpression(None)
"""An expression of which nothing is known."""
