package dev.pennon.spark.plan;

import static dev.pennon.spark.compat.Sequences.items;

import com.fasterxml.jackson.databind.node.ObjectNode;
import org.apache.spark.SparkContext;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.status.api.v1.ExecutorSummary;

/** How many tasks the executors of a session run at once, and one of them. */
final class ExecutorSlots {
  private ExecutorSlots() {}

  static void describe(ObjectNode request) {
    SparkContext context = SparkSession.active().sparkContext();
    // Settings need not say it: a standalone executor takes all cores of its machine. The driver is
    // one without any, unless it runs the tasks.
    int cores =
        items(context.statusStore().executorList(true)).stream()
            .mapToInt(ExecutorSummary::totalCores).filter(count -> count > 0).min()
            .orElse(context.conf().getInt("spark.executor.cores", 1));
    request.put("slots", Math.max(1, cores / context.conf().getInt("spark.task.cpus", 1)));
    request.put("parallelism", SparkSession.active().leafNodeDefaultParallelism());
  }
}
