"""Registers Parquet directories as the files of an Iceberg table, through Iceberg's Java API.

Runs in the virtual environment of Iceberg's Spark: ``python -m benchmarks.iceberg_append ORDER``,
with a JSON object of ``conf``, ``table``, ``columns``, ``partitions`` (paths below ``folder`` are
theirs), ``num_bytes`` and ``num_rows`` of each file. ``CALL add_files`` would run two tasks for
each directory.
"""

from __future__ import annotations

import json
import sys

from pyspark.sql import SparkSession


def main() -> None:
    """Make the table and add the files in one commit."""
    order = json.loads(sys.stdin.read())
    spark = SparkSession.builder.master("local[2]").config(map=order["conf"]).getOrCreate()
    name = order["table"]
    spark.sql(f"DROP TABLE IF EXISTS {name}")
    spark.sql(f"CREATE TABLE {name} ({order['columns']}) USING iceberg PARTITIONED BY (day, k)")
    iceberg = spark._jvm.org.apache.iceberg
    table = iceberg.spark.Spark3Util.loadIcebergTable(spark._jsparkSession, name)
    append = table.newFastAppend()
    builder = iceberg.DataFiles.builder(table.spec())
    builder.withFormat("PARQUET")
    builder.withFileSizeInBytes(order["num_bytes"])
    builder.withRecordCount(order["num_rows"])
    for partition in order["partitions"]:
        builder.withPath(f"{order['folder']}/{partition}/part-0.parquet")
        builder.withPartitionPath(partition)
        append.appendFile(builder.build())
    append.commit()
    spark.stop()


if __name__ == "__main__":
    main()
