package dev.pennon.spark.worker;

import dev.pennon.spark.failures.WorkerFailure;
import org.apache.spark.SparkEnv;
import org.apache.spark.network.util.JavaUtils;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Watches that a worker lives: a process that hangs answers nothing, and nobody would ever know.
 *
 * <p>A worker says every few seconds that it lives, whatever it computes.
 */
final class WorkerWatch {
  static final String TIMEOUT = "spark.pennon.worker.timeout";
  private static final Logger LOG = LoggerFactory.getLogger(WorkerWatch.class);
  private static final long PAUSE_MILLIS = 1000;
  private static final String OTHERWISE = "120s";

  private WorkerWatch() {}

  /** Seconds after which a silent worker counts as hung; 0 where none ever does. */
  static long timeoutSeconds() {
    SparkEnv environment = SparkEnv.get();
    String value = environment == null ? OTHERWISE : environment.conf().get(TIMEOUT, OTHERWISE);
    try {
      return JavaUtils.timeStringAsSec(value);
    } catch (NumberFormatException e) {
      throw WorkerFailure.of("TIME_UNKNOWN", "setting", TIMEOUT, "value", value);
    }
  }

  static void begin(WorkerProcess worker) {
    long timeout = timeoutSeconds();
    if (timeout > 0) {
      WorkerLog.inBackground("pennon-worker-watch", () -> watch(worker, timeout));
    }
  }

  private static void watch(WorkerProcess worker, long timeoutSeconds) {
    long awake = System.nanoTime();
    while (worker.isAlive()) {
      try {
        Thread.sleep(PAUSE_MILLIS);
      } catch (InterruptedException e) {
        return;
      }
      long slept = System.nanoTime() - awake;
      awake += slept;
      // A machine that stood still, this JVM with it, is no sign that the worker hangs.
      boolean stoodStill = slept > 10 * PAUSE_MILLIS * 1_000_000;
      if (!stoodStill && worker.silentSeconds() >= timeoutSeconds) {
        LOG.error(
            "Pennon worker {} has said nothing for {} seconds ({}): it is ended",
            worker.pid(), timeoutSeconds, TIMEOUT);
        worker.end();
        return;
      }
    }
  }
}
