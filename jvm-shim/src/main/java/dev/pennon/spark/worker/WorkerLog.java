package dev.pennon.spark.worker;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStream;
import java.io.InputStreamReader;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.function.Consumer;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Forwards what the worker prints to Spark's log, and remembers its last line.
 *
 * <p>At the level INFO, tracebacks too: Spark shows warnings on the screen, and what a user has to
 * know of a failure is in its message.
 */
final class WorkerLog {
  private static final Logger LOG = LoggerFactory.getLogger("dev.pennon.worker");

  private final CountDownLatch ended = new CountDownLatch(1);
  private volatile String lastLine = "no output";

  WorkerLog(InputStream errors) {
    BufferedReader reader =
        new BufferedReader(new InputStreamReader(errors, StandardCharsets.UTF_8));
    read(reader, this::forward, ended::countDown);
  }

  /** The last line that is not blank, once the worker closed its output. */
  String lastLine() {
    try {
      ended.await(1, TimeUnit.SECONDS);
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    }
    return lastLine;
  }

  static String readLine(BufferedReader output) {
    try {
      return output.readLine();
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  /** Reads on what the worker says of itself, a line of JSON each. */
  static void listen(BufferedReader output, Consumer<String> listener) {
    read(output, listener, () -> {});
  }

  private void forward(String line) {
    if (!line.isBlank()) {
      lastLine = line;
    }
    LOG.info("{}", line);
  }

  private static void read(BufferedReader output, Consumer<String> reader, Runnable atEnd) {
    inBackground(
        "pennon-worker-log",
        () -> {
          try {
            output.lines().forEach(reader);
          } catch (UncheckedIOException e) {
            LOG.debug("The worker's output ended", e);
          }
          atEnd.run();
        });
  }

  /** Runs something in a thread that does not keep the JVM alive. */
  static void inBackground(String name, Runnable work) {
    Thread thread = new Thread(work, name);
    thread.setDaemon(true);
    thread.start();
  }
}
