package dev.pennon.spark.plan;

import org.apache.spark.SparkConf;
import org.apache.spark.SparkContext;
import org.apache.spark.sql.classic.SparkSession;

/** How many tasks of a session one executor runs at once, as far as Spark's settings tell. */
final class ExecutorSlots {
  private ExecutorSlots() {}

  static int count() {
    SparkContext context = SparkSession.active().sparkContext();
    SparkConf conf = context.getConf();
    int cores =
        context.isLocal() ? context.defaultParallelism() : conf.getInt("spark.executor.cores", 1);
    return Math.max(1, cores / Math.max(1, conf.getInt("spark.task.cpus", 1)));
  }
}
