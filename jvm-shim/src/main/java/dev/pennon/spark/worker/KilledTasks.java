package dev.pennon.spark.worker;

import dev.pennon.spark.failures.WorkerFailure;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import org.apache.spark.TaskContext;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Closes the connections of killed tasks, which cancels what the worker does for them.
 *
 * <p>Spark interrupts a thread that waits only where the job asks for it
 * (spark.job.interruptOnCancel); otherwise it sets a mark, which a task that waits for its first
 * row does not see.
 */
final class KilledTasks {
  private static final Logger LOG = LoggerFactory.getLogger(KilledTasks.class);
  private static final long PAUSE_MILLIS = 200;
  private static final Map<WorkerConnection, TaskContext> WAITING = new ConcurrentHashMap<>();

  static {
    WorkerLog.inBackground("pennon-killed-tasks", KilledTasks::closeForever);
  }

  private KilledTasks() {}

  /** From here the task of this thread, if it is one's, may be killed while it waits. */
  static void watch(WorkerConnection connection) {
    TaskContext task = TaskContext.get();
    if (task != null) {
      WAITING.put(connection, task);
    }
  }

  static void forget(WorkerConnection connection) {
    WAITING.remove(connection);
  }

  /** Whether this thread's task was killed: nobody wants an answer any more. */
  static boolean isKilled() {
    TaskContext task = TaskContext.get();
    return task != null && task.isInterrupted();
  }

  private static void closeForever() {
    while (true) {
      WAITING.forEach(KilledTasks::closeIfKilled);
      try {
        Thread.sleep(PAUSE_MILLIS);
      } catch (InterruptedException e) {
        return;
      }
    }
  }

  private static void closeIfKilled(WorkerConnection connection, TaskContext task) {
    if (!task.isInterrupted()) {
      return;
    }
    WAITING.remove(connection);
    try {
      connection.close();
    } catch (WorkerFailure e) {
      LOG.debug("Cannot close the connection of a killed task", e);
    }
  }
}
