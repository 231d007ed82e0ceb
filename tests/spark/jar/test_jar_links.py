"""The one jar links with the Spark that is installed, whichever of the supported ones it is."""

from __future__ import annotations

from pathlib import Path

import pyspark
from tests.jar_references import ClassPath, unlinked

from pennon.session import find_jar

PARSER = (
    "dev/pennon/spark/statements/PennonParser: org/apache/spark/sql/catalyst/parser/ParserInterface"
)
NEAREST = "dev/pennon/spark/search/NearestJoin: org/apache/spark/sql/catalyst/plans/"
# What is named and not there, by the Sparks that do not have it: nothing else may be missing.
NOT_IN_OLDER = {
    # Only a Spark that has these methods calls them.
    (
        f"{PARSER}.parseTemporalTableIdentifier(Ljava/lang/String;)"
        "Lorg/apache/spark/sql/catalyst/parser/TemporalIdentifier;"
    ),
    (
        f"{PARSER}.splitStatements(Ljava/lang/String;)"
        "Lorg/apache/spark/sql/catalyst/parser/SqlStatementSplitResult;"
    ),
    # ArrowSchemas catches the error and calls the method of four parameters.
    (
        "dev/pennon/spark/compat/ArrowSchemas: org/apache/spark/sql/util/ArrowUtils.toArrowSchema("
        "Lorg/apache/spark/sql/types/StructType;Ljava/lang/String;ZZZ)"
        "Lorg/apache/arrow/vector/types/pojo/Schema;"
    ),
}
# What Spark has from 4.2 on: change feeds, which it asks for, and joins with the nearest rows, of
# which NearestJoin asks nothing where a plan has none.
NEWER = {
    "4.1": (
        "dev/pennon/spark/catalog/ChangeFeed: ",
        f"{NEAREST}NearestBy",
        f"{NEAREST}logical/NearestBy",
    )
}
NOT_IN = {"4.1": NOT_IN_OLDER, "4.2": NOT_IN_OLDER, "4.3": set[str]()}


def test_every_class_method_and_field_that_the_jar_names_is_in_this_spark() -> None:
    jar = find_jar()
    jars = sorted((Path(pyspark.__path__[0]) / "jars").glob("*.jar"))
    version = ".".join(pyspark.__version__.split(".")[:2])
    found = unlinked(jar, ClassPath([*jars, jar]))
    assert {name for name in found if not name.startswith(NEWER.get(version, ()))} == (
        NOT_IN[version]
    )
