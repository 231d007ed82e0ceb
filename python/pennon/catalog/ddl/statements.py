"""Statements about tables that Spark's grammar lacks, or would read as something else.

``rewritten`` finds them among the tokens of Spark's lexer, and puts each into words of Spark:

| statement | becomes |
|---|---|
| ``ALTER TABLE … PARTITION FIELD``, ``TAG``, ``WRITE`` and the like; those about indexes |
  ``ALTER TABLE … SET TBLPROPERTIES`` of one property, whose value is its text |
| ``SHOW PARTITIONS``, ``SHOW INDEXES`` | a query of the metadata table |
| ``CREATE VIEW``, ``CREATE TABLE … CLONE`` | ``CREATE TABLE`` with that property |
| ``VACUUM``, ``OPTIMIZE`` and others of other table formats | as ``ALTER TABLE`` |

So Spark resolves the table, refreshes what it has cached of it, and takes the statement in scripts
and in EXECUTE IMMEDIATE. What the text means is said when the table is changed: by
``table_statement``, or by ``not_supported``, which tells what to type instead.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING, Final

from pennon.catalog.configured_catalog import misspelling_of
from pennon.errors import StatementNotSupported, TablePropertyRefused
from pennon.leaf.write.incoming_rows import counted_fields
from pennon.manifest.table_identity import MODES
from pennon.settings import COMPACTION, COMPRESSION, ROW_COMMANDS, SETTINGS, TRANSACTION, Place
from pennon.spec.column_names import STATISTICS_COLUMNS, CountedColumns
from pennon.spec.write_properties import codecs

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pennon.spec.schema import NamespaceSchema

__all__ = [
    "STATEMENT",
    "RewrittenStatement",
    "check_counted_columns",
    "check_named_columns",
    "check_names",
    "not_supported",
    "rewritten",
]

STATEMENT: Final = "pennon.statement"
"""The property whose value is a statement's text, written as in a URL; the jar knows it, too."""
_LITERALS: Final = frozenset({"NULL", "TRUE", "FALSE"})
_ANY: Final = "<name>"


@dataclass(frozen=True, slots=True)
class RewrittenStatement:
    """What stands for some tokens of a text, if the table is one of Pennon's.

    Args:
        first: The first of the tokens.
        end: The one behind the last.
        table: The table's name, as it was written.
        pieces: The text in their place; between two of them stands the table's full name.
    """

    first: int
    end: int
    table: str
    pieces: tuple[str, ...]


class _Tokens:
    """The tokens of a text, each with a blank before it where it stands apart."""

    def __init__(self, tokens: Sequence[str]) -> None:
        self._tokens = tokens
        self.words = [token.removeprefix(" ").upper() for token in tokens]

    def text(self, first: int, end: int) -> str:
        """Give a part of the text, with one blank in each gap."""
        return "".join(self._tokens[first:end]).removeprefix(" ")

    def behind(self, at: int, forms: Sequence[Sequence[str]]) -> int | None:
        """Find where the first of these forms ends that stands at a place."""
        for form in forms:
            words = self.words[at : at + len(form)]
            if len(words) == len(form) and all(
                expected in (word, _ANY) for word, expected in zip(words, form, strict=True)
            ):
                return at + len(form)
        return None

    def behind_name(self, at: int) -> int | None:
        """Find where a name of several parts ends that starts at a place."""
        while at < len(self.words) and self._is_name(at):
            at += 1
            if self.words[at : at + 1] != ["."]:
                return at
            at += 1
        return None

    def end_of_statement(self, at: int) -> int:
        """Find the semicolon behind a place, or the end."""
        return next(
            (end for end in range(at, len(self.words)) if self.words[end] == ";"), len(self.words)
        )

    def fields(self, first: int, end: int) -> list[tuple[str, str]] | None:
        """Read ``PARTITION (field = value, …)``, each value as it is written; None if it is not."""
        if first == end:
            return []
        if self.words[first : first + 2] != ["PARTITION", "("] or self.words[end - 1] != ")":
            return None
        read = []
        depth, start = 0, first + 2
        for at in range(start, end):
            depth += (self.words[at] == "(") - (self.words[at] == ")")
            is_last = at == end - 1
            if depth < 0 and not is_last:
                return None
            if is_last or (depth == 0 and self.words[at] == ","):
                is_field = at > start + 2 and self._is_name(start) and not self._is_literal(start)
                if not is_field or self.words[start + 1] not in ("=", "=="):
                    return None
                if not self._is_value(start + 2, at):
                    return None
                read.append((self.text(start, start + 1), self.text(start + 2, at)))
                start = at + 1
        return read if depth < 0 else None

    def _is_value(self, first: int, end: int) -> bool:
        """Tell whether there is a literal, a parameter, or a call of literals."""
        kinds = [self._kind(at) for at in range(first, end)]
        match kinds:
            case ["?"] | [":", "name"]:
                return True
            case ["name", "(", *arguments, ")"]:
                return not {*arguments} - {"name", "literal", ",", "-", "(", ")"}
        if kinds[0] in ("-", "+"):
            kinds = kinds[1:]
        if kinds[:1] == ["name"]:
            kinds = kinds[1:]
        return {*kinds} == {"literal"}

    def _kind(self, at: int) -> str:
        if self._is_literal(at):
            return "literal"
        return "name" if self._is_name(at) else self.words[at]

    def _is_name(self, at: int) -> bool:
        return self.words[at][0].isalnum() or self.words[at][0] in "_`'\""

    def _is_literal(self, at: int) -> bool:
        word = self.words[at]
        return word in _LITERALS or word.removeprefix(".")[:1] in tuple("'\"0123456789")


def _forms(*choices: str) -> tuple[tuple[str, ...], ...]:
    """Give the words of a statement, of each choice one, the longest first."""
    forms = [
        tuple(" ".join(words).split())
        for words in product(*(choice.split("|") for choice in choices))
    ]
    return tuple(sorted(forms, key=len, reverse=True))


def _change(text: str) -> str:
    """Give the clause that stands for a statement's text."""
    # The characters that a string literal could read otherwise, as in a URL; spaces, because
    # Iceberg's parser takes any ALTER TABLE for its own that has "add partition field" within.
    for character in "%'\\ ":
        text = text.replace(character, f"%{ord(character):X}")
    return f"TBLPROPERTIES ('{STATEMENT}' = '{text}')"


@dataclass(frozen=True, slots=True)
class _Statement:
    """A statement of some form: where it starts, and where its table's name starts and ends."""

    tokens: _Tokens
    first: int
    name: int
    end: int

    @property
    def table(self) -> str:
        return self.tokens.text(self.name, self.end)

    @property
    def last(self) -> int:
        return self.tokens.end_of_statement(self.end)

    def instead(self, *pieces: str) -> RewrittenStatement:
        """Put something in its place, whatever follows the table's name."""
        return RewrittenStatement(self.first, len(self.tokens.words), self.table, pieces)

    def changing(self) -> RewrittenStatement:
        """Change the table by the words before its name."""
        text = self.tokens.text(self.first, self.name)
        return self.instead(f"ALTER TABLE {self.table} SET {_change(text)}")

    def making_a_view(self) -> RewrittenStatement:
        """Make a table by the words before its name."""
        return self._making(self.tokens.text(self.first, self.name))

    def making_a_clone(self) -> RewrittenStatement:
        """Make a table by the two words behind its name."""
        return self._making(self.tokens.text(self.end, self.end + 2))

    def _making(self, text: str) -> RewrittenStatement:
        return self.instead(f"CREATE TABLE {self.table} (column INT) {_change(text)}")

    def changing_an_index(self) -> RewrittenStatement:
        """Change the table by what stands before ON and behind its name."""
        words = self.tokens.words
        on = self.name - 1 if words[self.name - 1] == "ON" else self.name - 2
        text = f"{self.tokens.text(self.first, on)} {self.tokens.text(self.end, self.last)}"
        return self.instead(f"ALTER TABLE {self.table} SET {_change(text.rstrip())}")

    def showing_indexes(self) -> RewrittenStatement:
        """Select from the metadata table, with what may follow there."""
        rest = self.tokens.text(self.end, self.last)
        return self.instead("SELECT * FROM ", f".indexes {rest}".rstrip())

    def altering(self) -> RewrittenStatement:
        """Change the table by what stands behind its name, which stays."""
        clause = f"SET {_change(self.tokens.text(self.end, self.last))}"
        return RewrittenStatement(self.end, self.last, self.table, (clause,))

    def showing_partitions(self) -> RewrittenStatement | None:
        """Select from the metadata table; Spark says what is wrong with another PARTITION."""
        fields = self.tokens.fields(self.end, self.last)
        if fields is None:
            return None
        conditions = "".join(f" AND partition.{name} <=> {value}" for name, value in fields)
        query = f".partitions WHERE name IS NOT NULL{conditions} ORDER BY name"
        pieces = ("SELECT name AS partition FROM ", query)
        return RewrittenStatement(self.first, self.last, self.table, pieces)


@dataclass(frozen=True, slots=True)
class _Form:
    """How statements are written: the words before the table's name, some behind it."""

    before: tuple[tuple[str, ...], ...]
    become: Callable[[_Statement], RewrittenStatement | None]
    behind: tuple[tuple[str, ...], ...] = ((),)

    def find(self, tokens: _Tokens, first: int) -> RewrittenStatement | None:
        """Rewrite the statement that starts at a place, if it is of this form."""
        name = tokens.behind(first, self.before)
        end = None if name is None else tokens.behind_name(name)
        if name is None or end is None or tokens.behind(end, self.behind) is None:
            return None
        return self.become(_Statement(tokens, first, name, end))


_IF: Final = "|IF EXISTS|IF NOT EXISTS"
# Those that are the whole text, the first that fits.
_WHOLE: Final = (
    _Form(
        _forms("VACUUM|OPTIMIZE|RESTORE TABLE|RESTORE|REORG TABLE|ANALYZE TABLE"),
        _Statement.changing,
    ),
    _Form(
        _forms("DESCRIBE HISTORY|DESC HISTORY|DESCRIBE DETAIL|MSCK REPAIR TABLE|FSCK REPAIR TABLE"),
        _Statement.changing,
    ),
    _Form(
        _forms("TRUNCATE TABLE|DESCRIBE|DESC|DESCRIBE TABLE|DESC TABLE", "|EXTENDED|FORMATTED"),
        _Statement.changing,
        behind=_forms("PARTITION"),
    ),
    _Form(_forms("CREATE", "|OR REPLACE", "VIEW", "|IF NOT EXISTS"), _Statement.making_a_view),
    _Form(
        _forms("CREATE TABLE IF NOT EXISTS|CREATE TABLE|CREATE OR REPLACE TABLE|REPLACE TABLE"),
        _Statement.making_a_clone,
        behind=_forms("SHALLOW|DEEP", "CLONE"),
    ),
    _Form(
        _forms("CREATE|DROP", "INDEX", _IF, _ANY, "ON", "|TABLE"),
        _Statement.changing_an_index,
    ),
    _Form(_forms("SHOW INDEXES", "ON|IN|FROM"), _Statement.showing_indexes),
)
# Those that may be a part of the text: of a script, or behind EXPLAIN.
_PARTS: Final = (
    _Form(
        _forms("ALTER TABLE"),
        _Statement.altering,
        behind=(
            *_forms("ADD|DROP|REPLACE", _IF, "PARTITION"),
            *_forms("CREATE|CREATE OR REPLACE|REPLACE|DROP", "TAG|BRANCH"),
            *_forms("CREATE|DROP|REFRESH", "INDEX"),
            *_forms("SET|DROP", "IDENTIFIER FIELDS"),
            *_forms("WRITE|RECOVER|CLUSTER|PARTITION"),
        ),
    ),
    _Form(_forms("SHOW PARTITIONS"), _Statement.showing_partitions),
)


def rewritten(tokens: Sequence[str]) -> tuple[RewrittenStatement, ...]:
    """Find the statements of a text, and what stands for each.

    Args:
        tokens: Those of Spark's lexer without comments, each with a blank before it where it stands
            apart from the one before.

    Returns:
        The statements, in their order.

    Example:
        >>> rewritten(["OPTIMIZE", " a", ".", "b", " ZORDER", " BY", " c"])[0].pieces
        ("ALTER TABLE a.b SET TBLPROPERTIES ('pennon.statement' = 'OPTIMIZE')",)
        >>> shown = rewritten(["SHOW", " PARTITIONS", " t", " PARTITION", " (", "k", "=", "1", ")"])
        >>> "lance.shop.t".join(shown[0].pieces)[30:]
        'lance.shop.t.partitions WHERE name IS NOT NULL AND partition.k <=> 1 ORDER BY name'
    """
    text = _Tokens(tokens)
    for form in _WHOLE:
        whole = form.find(text, 0)
        if whole is not None:
            return (whole,)
    statements: list[RewrittenStatement] = []
    for first in range(len(tokens)):
        if not statements or first >= statements[-1].end:
            statements += [part for form in _PARTS if (part := form.find(text, first)) is not None]
    return tuple(statements)


# Table properties of other formats that would have no effect here.
#
# Whoever sets one counts on what it does there. So the families of names that Iceberg and Delta
# keep for themselves are refused, but for those that Pennon reads; all other names are the user's.

_FAMILIES: Final = ("write.", "read.", "commit.", "history.", "gc.", "delta.")
# The collation that Spark gives to columns which state none, and the only one that is stored.
_BYTES: Final = "UTF8_BINARY"
_KNOWN: Final = frozenset(
    setting.name.replace("<command>", command)
    for setting in SETTINGS
    if setting.place is Place.TABLE
    for command in ROW_COMMANDS
)
# What to write instead, by the beginning of the name: the first that fits.
_INSTEAD: Final[Mapping[str, str]] = {
    "format-version": "Leave it out: the format has one version",
    "write.format.default": "Leave it out: files are Lance's",
    "write.delete.format.default": "Leave it out: files are Lance's",
    "write.parquet.": "Leave it out: files are Lance's",
    "write.orc.": "Leave it out: files are Lance's",
    "write.avro.": "Leave it out: files are Lance's",
    "write.distribution-mode": "Leave it out: rows are distributed by partition; their order is"
    " that of ALTER TABLE … WRITE ORDERED BY",
    "write.target-file-size-bytes": "Call system.compact(table => …, target_bytes => …)",
    "write.metadata.metrics.": "Name the columns in write.statistics.columns",
    "write.metadata.delete-after-commit": "Set history.expire.max-snapshot-age-ms",
    "write.metadata.previous-versions-max": "Set history.expire.min-snapshots-to-keep",
    "write.spark.accept-any-schema": "Write by INSERT WITH SCHEMA EVOLUTION or MERGE WITH SCHEMA"
    " EVOLUTION",
    "write.wap.enabled": "Leave it out: the format has no branches; CREATE TAG names a version"
    " that is audited",
    "write.object-storage.": "Leave it out: the folders of partitions begin with a hash",
    "history.expire.max-ref-age-ms": "Write ALTER TABLE … CREATE TAG … RETAIN 30 DAYS",
    "gc.enabled": "Leave it out: files go when expire_snapshots or vacuum is called, or where"
    " history.expire.max-snapshot-age-ms is set",
    "commit.retry.": "Leave it out: commits are tried again by themselves",
    "read.split.": "Set spark.sql.files.maxPartitionBytes",
    "delta.enableChangeDataFeed": "Leave it out: <table>.changes shows what commits did",
    "delta.dataSkipping": "Name the columns in write.statistics.columns",
    "delta.deletedFileRetentionDuration": "Set history.expire.max-snapshot-age-ms",
    "delta.logRetentionDuration": "Set history.expire.max-snapshot-age-ms",
    "delta.autoOptimize.": "Leave it out: small files are put together behind commits",
}


def check_names(table: str, properties: Mapping[str, str]) -> None:
    """Refuse properties that would be kept and do nothing.

    Args:
        table: The table's full name, for errors.
        properties: Those that are set.

    Raises:
        TablePropertyRefused: It says what to write instead.

    Example:
        >>> check_names("lance.shop.orders", {"team": "sales", "write.merge.mode": "copy-on-write"})
        >>> check_names("lance.shop.orders", {"write.ordr": "id"})
        Traceback (most recent call last):
            ...
        pennon.errors.TablePropertyRefused: [TABLE_PROPERTY_REFUSED] Cannot set the \
property write.ordr = 'id' of table lance.shop.orders: no property of that name is supported. \
Write write.order if that is meant.
    """
    for name, value in properties.items():
        if name not in _KNOWN and (_is_of_a_family(name) or _is_meant_as_the_mode(name, value)):
            why = "no property of that name is supported"
            raise TablePropertyRefused(
                property=name, value=value, table=table, why=why, advice=_advice(name)
            )
    collation = properties.get("collation", _BYTES)
    if collation.upper() != _BYTES:
        raise TablePropertyRefused(
            property="collation",
            value=collation,
            table=table,
            why="strings are compared by their bytes",
            advice=f"Leave DEFAULT COLLATION out, and write COLLATE {collation} in queries",
        )
    compaction = properties.get(COMPACTION.name, "true")
    if compaction.lower() not in ("true", "false"):
        raise TablePropertyRefused(
            property=COMPACTION.name,
            value=compaction,
            table=table,
            why="it is neither 'true' nor 'false'",
            advice="Write one of these, or leave the property out",
        )


# The table property ``write.statistics.columns`` of a statement: it has to name columns.


def check_counted_columns(
    table: str, properties: Mapping[str, str], schema: NamespaceSchema
) -> None:
    """Refuse names under which nothing would be counted.

    A column that is named and dropped later is no error: the property is looked at when it is set.

    Args:
        table: The table's full name, for errors.
        properties: Those that are set.
        schema: The table's columns.

    Raises:
        TablePropertyRefused: It lists the columns that can be counted.

    Example:
        >>> import pyarrow as pa
        >>> from pennon.spec import NamespaceSchema
        >>> schema = NamespaceSchema.with_fresh_ids(pa.schema({"id": pa.int64()}))
        >>> check_counted_columns("lance.shop.t", {"write.statistics.columns": "idd"}, schema)
        Traceback (most recent call last):
            ...
        pennon.errors.TablePropertyRefused: [TABLE_PROPERTY_REFUSED] Cannot set the \
property write.statistics.columns = 'idd' of table lance.shop.t: no column idd has statistics. \
Write a number, or some of: id.
    """
    stated = CountedColumns.of(properties).names
    if stated is None:
        return
    can_be = list(counted_fields({STATISTICS_COLUMNS: str(len(schema.fields))}, schema))
    heads = {".".join(path[:end]).lower() for path in can_be for end in range(1, len(path) + 1)}
    missing = sorted(stated - heads)
    if missing:
        raise TablePropertyRefused(
            property=STATISTICS_COLUMNS,
            value=properties[STATISTICS_COLUMNS],
            table=table,
            why=f"no column {' or '.join(missing)} has statistics",
            advice=f"Write a number, or some of: {', '.join('.'.join(path) for path in can_be)}",
        )


def _is_of_a_family(name: str) -> bool:
    return name == "format-version" or name.lower().startswith(_FAMILIES)


def _is_meant_as_the_mode(name: str, value: str) -> bool:
    """Whether a name is the mode's but for its spelling, as its value tells, too."""
    is_near = misspelling_of(name.lower(), [TRANSACTION.name]) is not None
    return is_near and value.lower() in MODES


def _advice(name: str) -> str:
    for start, advice in _INSTEAD.items():
        if name.lower().startswith(start.lower()):
            return advice
    near = misspelling_of(name.lower(), sorted(_KNOWN))
    return "Leave it out" if near is None else f"Write {near} if that is meant"


@dataclass(frozen=True, slots=True)
class _Advice:
    """Why a statement means nothing, and what to type; both may name the table and its catalog."""

    words: tuple[str, ...]
    why: str
    advice: str


_VALUES: Final = "a partition is made of its rows' values"
_NO_STATEMENT: Final = "it is no statement for tables of Pennon"
_DELETE: Final = (
    "DELETE FROM {table} WHERE …, which reads no row where the condition decides whole partitions"
)
_NO_KEYS: Final = "the format has no identifier fields"
_MERGE: Final = "MERGE INTO {table} … ON …, which names the columns that identify a row"
_HISTORY: Final = "SELECT * FROM {table}.history, or {table}.snapshots for what each commit did"
_OF_PARTITION: Final = "what is known of a PARTITION stands in a metadata table"
_PARTITIONS: Final = (
    "SELECT * FROM {table}.partitions, with WHERE partition.<field> = … for some of them"
)
_OWN_FILES: Final = "each table has files of its own"
_COPY: Final = "CREATE TABLE {table} PARTITIONED BY (…) AS SELECT * FROM …"
_ONE_FIELD: Final = "a statement is about one partition field"
_ADVICE: Final = (
    # In front of those of PARTITION, which FIELDS would be taken for.
    _Advice(
        ("ADD", "PARTITION", "FIELDS"),
        _ONE_FIELD,
        "ALTER TABLE {table} ADD PARTITION FIELD …, once for each",
    ),
    _Advice(
        ("DROP", "PARTITION", "FIELDS"),
        _ONE_FIELD,
        "ALTER TABLE {table} DROP PARTITION FIELD …, once for each",
    ),
    _Advice(("ADD", "PARTITION"), _VALUES, "INSERT INTO {table} …, which makes it with its rows"),
    _Advice(("DROP", "PARTITION"), _VALUES, _DELETE),
    _Advice(("TRUNCATE", "TABLE"), _VALUES, _DELETE),
    _Advice(("PARTITION",), _VALUES, "UPDATE {table} SET …, which moves rows where they belong"),
    _Advice(
        ("RECOVER", "PARTITIONS"),
        "its manifest names every partition",
        "CALL {catalog}.system.adopt(table => '{name}', path => '…'), which takes datasets into it",
    ),
    _Advice(
        ("MSCK",),
        "its manifest names every partition",
        "CALL {catalog}.system.check(table => '{name}'), which looks for what is missing",
    ),
    _Advice(
        ("ANALYZE", "TABLE"),
        "its statistics stand with its partitions",
        "CALL {catalog}.system.analyze(table => '{name}')",
    ),
    _Advice(("SET", "IDENTIFIER", "FIELDS"), _NO_KEYS, _MERGE),
    _Advice(("DROP", "IDENTIFIER", "FIELDS"), _NO_KEYS, _MERGE),
    _Advice(
        ("CLUSTER", "BY"),
        "rows are clustered by the partition fields and the write order",
        "PARTITIONED BY (bucket(16, …)) for a new table, ALTER TABLE {table} ADD PARTITION FIELD"
        " bucket(16, …) or ALTER TABLE {table} WRITE ORDERED BY … for one that is there",
    ),
    _Advice(
        ("SORTED", "BY"),
        "rows are sorted by the write order, not within buckets",
        "bucketBy(…) without sortBy(…), or CLUSTERED BY (…) INTO … BUCKETS without SORTED BY, then"
        " ALTER TABLE {table} WRITE ORDERED BY …",
    ),
    _Advice(
        ("VACUUM",),
        _NO_STATEMENT,
        "CALL {catalog}.system.vacuum(table => '{name}'), which deletes files that no version"
        " names, or expire_snapshots, which deletes old versions",
    ),
    _Advice(("FSCK",), _NO_STATEMENT, "CALL {catalog}.system.check(table => '{name}')"),
    _Advice(("REORG", "TABLE"), _NO_STATEMENT, "CALL {catalog}.system.compact(table => '{name}')"),
    _Advice(("SHALLOW", "CLONE"), _OWN_FILES, _COPY),
    _Advice(("DEEP", "CLONE"), _OWN_FILES, _COPY),
    _Advice(("OPTIMIZE",), _NO_STATEMENT, "CALL {catalog}.system.compact(table => '{name}')"),
    _Advice(
        ("RESTORE",),
        _NO_STATEMENT,
        "CALL {catalog}.system.rollback(table => '{name}', version => 3)",
    ),
    _Advice(("DESCRIBE", "HISTORY"), _NO_STATEMENT, _HISTORY),
    _Advice(("DESC", "HISTORY"), _NO_STATEMENT, _HISTORY),
    _Advice(
        ("DESCRIBE", "DETAIL"),
        _NO_STATEMENT,
        "DESCRIBE TABLE EXTENDED {table}, or SELECT * FROM {table}.files",
    ),
    # Behind DETAIL and HISTORY: what else arrives is of a PARTITION.
    _Advice(("DESCRIBE",), _OF_PARTITION, _PARTITIONS),
    _Advice(("DESC",), _OF_PARTITION, _PARTITIONS),
    _Advice(
        ("CREATE", "VIEW"),
        "the catalog {catalog} keeps tables alone",
        "CREATE TEMPORARY VIEW …, or CREATE VIEW spark_catalog.default.… for one that stays",
    ),
)
_FILLERS: Final = frozenset({"IF", "NOT", "EXISTS", "OR", "REPLACE"})


def not_supported(words: Sequence[str], catalog: str, table: str) -> StatementNotSupported | None:
    """Find what to say of a statement.

    Args:
        words: The first words of the statement besides the table's name.
        catalog: The catalog's name.
        table: The table's full name.

    Returns:
        The error, or None for a statement that has a meaning.

    Example:
        >>> not_supported(["OPTIMIZE"], "lance", "lance.shop.orders").parameters["advice"]
        "CALL lance.system.compact(table => 'shop.orders')"
    """
    stated = [word.upper() for word in words if word.upper() not in _FILLERS]
    for advice in _ADVICE:
        if tuple(stated[: len(advice.words)]) == advice.words and "FIELD" not in stated:
            name = table.removeprefix(f"{catalog}.")
            parts = {"catalog": catalog, "table": table, "name": name}
            return StatementNotSupported(
                statement=" ".join(advice.words),
                table=table,
                why=advice.why.format(**parts),
                advice=advice.advice.format(**parts),
            )
    return None


def check_named_columns(table: str, properties: Mapping[str, str], schema: NamespaceSchema) -> None:
    """Refuse properties that name columns, or codecs, that there are not.

    Args:
        table: The table's full name, for errors.
        properties: Those that are set.
        schema: The table's columns.

    Raises:
        TablePropertyRefused: It says what there is.
    """
    check_counted_columns(table, properties, schema)
    value = properties.get(COMPRESSION.name, "")
    _, wrong = codecs(value, schema.arrow)
    if wrong:
        raise TablePropertyRefused(
            property=COMPRESSION.name,
            value=value,
            table=table,
            why=f"'{wrong[0]}' names no codec, or no column before it",
            advice="Write lz4, zstd or none, or a column before one of them, as in 'comment zstd'",
        )
