"""The flights joined with their planes and their weather, beside the same joins over Parquet."""

from __future__ import annotations

import shutil

import pennon
from pennon.demo import flights_data
from pennon.demo.executed_plan import ExecutedPlan
from side_by_side import FOLDER, SPARK_CONF, medians, print_table

LAKE, PARQUET = FOLDER / "join_lake", FOLDER / "join_parquet"
QUERIES = {
    "flights with planes": (
        "SELECT p.manufacturer, count(*), sum(f.distance) FROM {flights} f "
        "JOIN {planes} p ON f.tailnum = p.tailnum GROUP BY p.manufacturer ORDER BY 1"
    ),
    "flights with weather": (
        "SELECT f.origin, count(*), round(avg(w.temp), 6) FROM {flights} f JOIN {weather} w "
        "ON f.time_hour = w.time_hour AND f.origin = w.origin GROUP BY f.origin ORDER BY 1"
    ),
}


def main() -> None:
    for folder in (LAKE, PARQUET):
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
    builder = pennon.spark(root=LAKE).master("local[2]")
    for key, value in SPARK_CONF.items():
        builder.config(key, value)
    builder.config("spark.sql.autoBroadcastJoinThreshold", "-1")
    builder.config("spark.sql.adaptive.autoBroadcastJoinThreshold", "-1")
    builder.config("spark.sql.shuffle.partitions", "8")
    spark = builder.getOrCreate()
    csv = flights_data.unpack(FOLDER / "csv")
    spark.sql("CREATE NAMESPACE lance.nyc")
    for table in flights_data.TABLES:
        spark.sql(table.create_view(csv))
        spark.sql(table.create_table("lance.nyc"))
        spark.sql(f"INSERT INTO lance.nyc.{table.name} SELECT * FROM {table.name}_csv")
        path = str(PARQUET / table.name)
        spark.table(f"{table.name}_csv").coalesce(2).write.parquet(path)
        spark.read.parquet(path).createOrReplaceTempView(f"parquet_{table.name}")
    names = [table.name for table in flights_data.TABLES]
    readers = {
        "Pennon": {name: f"lance.nyc.{name}" for name in names},
        "Parquet": {name: f"parquet_{name}" for name in names},
    }
    cases, shuffles = {}, {}
    for question, sql in QUERIES.items():
        for reader, tables in readers.items():
            text = sql.format(**tables)
            frame = spark.sql(text)
            frame.collect()
            shuffles[f"{question}:{reader}"] = ExecutedPlan.of(frame).shuffles_under_joins
            cases[f"{question}:{reader}"] = lambda text=text: list(
                map(tuple, spark.sql(text).collect())
            )
    seconds = medians(cases)
    spark.stop()
    print_table(
        "336,776 flights, local[2], no broadcast, seconds (medians, by turns)",
        ("join", "Pennon", "Parquet", "faster", "shuffles under the join"),
        [
            (
                question,
                seconds[f"{question}:Pennon"],
                seconds[f"{question}:Parquet"],
                f"{seconds[f'{question}:Parquet'] / seconds[f'{question}:Pennon']:.1f} x",
                f"{shuffles[f'{question}:Pennon']}, Parquet {shuffles[f'{question}:Parquet']}",
            )
            for question in QUERIES
        ],
    )


if __name__ == "__main__":
    main()
