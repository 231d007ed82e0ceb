package dev.pennon.spark.worker;

import com.fasterxml.jackson.databind.JsonNode;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.net.StandardProtocolFamily;
import java.net.UnixDomainSocketAddress;
import java.nio.channels.SocketChannel;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentLinkedDeque;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The Python worker of this JVM: one process, started on first use and again when it died.
 *
 * <p>Its standard input stays open as long as this JVM lives; the worker ends when it closes, so
 * that it never outlives a JVM, not even a killed one.
 */
public final class WorkerProcess {
  private static final Logger LOG = LoggerFactory.getLogger(WorkerProcess.class);
  private static final int START_TIMEOUT_SECONDS = 60;
  private static final int MAX_IDLE_CONNECTIONS = 32;

  private static final Object STARTING = new Object();
  private static volatile WorkerProcess current;

  private final Process process;
  private final Path directory;
  private final Path socket;
  private final WorkerLog log;
  private final ConcurrentLinkedDeque<SocketChannel> idle = new ConcurrentLinkedDeque<>();

  private WorkerProcess(Process process, Path directory, Path socket, WorkerLog log) {
    this.process = process;
    this.directory = directory;
    this.socket = socket;
    this.log = log;
  }

  /** The worker of this JVM, started if there is none alive. */
  public static WorkerProcess shared() {
    WorkerProcess worker = current;
    if (worker != null && worker.process.isAlive()) {
      return worker;
    }
    synchronized (STARTING) {
      if (current == null || !current.process.isAlive()) {
        if (current != null) {
          LOG.warn("The Pennon worker ended with code {}; starting it again", current.exitCode());
          current.stop();
        }
        current = start(WorkerInterpreter.choose());
      }
      return current;
    }
  }

  /** Starts the worker in the background, so that the first query finds it ready. */
  public static void startEarly() {
    String python = WorkerInterpreter.choose();
    Thread starter =
        new Thread(
            () -> {
              try {
                synchronized (STARTING) {
                  if (current == null) {
                    current = start(python);
                  }
                }
              } catch (WorkerFailure e) {
                LOG.debug("The Pennon worker did not start early", e);
              }
            },
            "pennon-worker-start");
    starter.setDaemon(true);
    starter.start();
  }

  public long pid() {
    return process.pid();
  }

  /** An idle connection, or a new one. */
  WorkerConnection connection() {
    SocketChannel pooled = idle.pollFirst();
    try {
      return new WorkerConnection(this, pooled == null ? connect() : pooled);
    } catch (IOException e) {
      throw WorkerFailure.lost(
          "cannot connect to process " + process.pid() + ": " + e.getMessage(), e);
    }
  }

  void keep(SocketChannel channel) {
    if (idle.size() >= MAX_IDLE_CONNECTIONS || !process.isAlive()) {
      close(channel);
    } else {
      idle.addFirst(channel);
    }
  }

  private static void close(SocketChannel channel) {
    try {
      channel.close();
    } catch (IOException e) {
      LOG.debug("Cannot close a connection to the worker", e);
    }
  }

  private SocketChannel connect() throws IOException {
    SocketChannel channel = SocketChannel.open(StandardProtocolFamily.UNIX);
    try {
      channel.connect(UnixDomainSocketAddress.of(socket));
      return channel;
    } catch (IOException e) {
      channel.close();
      throw e;
    }
  }

  private static WorkerProcess start(String python) {
    Path directory;
    Process process;
    try {
      directory =
          Files.createTempDirectory(
              "pennon-",
              PosixFilePermissions.asFileAttribute(PosixFilePermissions.fromString("rwx------")));
    } catch (IOException e) {
      throw WorkerFailure.notStarted(
          python,
          "its socket needs a temporary directory: " + e.getMessage(),
          "Make java.io.tmpdir a directory that can be written.",
          e);
    }
    Path socket = directory.resolve("worker.sock");
    try {
      process =
          new ProcessBuilder(
                  List.of(python, "-m", "pennon.worker", "--socket", socket.toString()))
              .start();
    } catch (IOException e) {
      delete(directory, socket);
      throw WorkerFailure.notStarted(
          python, "it cannot be run (" + e.getMessage() + ")", WorkerInterpreter.REMEDY, e);
    }
    WorkerProcess worker =
        new WorkerProcess(process, directory, socket, new WorkerLog(process.getErrorStream()));
    Runtime.getRuntime().addShutdownHook(new Thread(worker::stop, "pennon-worker-stop"));
    try {
      worker.awaitReady(python);
      return worker;
    } catch (WorkerFailure e) {
      worker.stop();
      throw e;
    }
  }

  private void awaitReady(String python) {
    BufferedReader output =
        new BufferedReader(
            new InputStreamReader(process.getInputStream(), StandardCharsets.UTF_8));
    String line;
    try {
      line =
          CompletableFuture.supplyAsync(() -> WorkerLog.readLine(output))
              .get(START_TIMEOUT_SECONDS, TimeUnit.SECONDS);
    } catch (TimeoutException e) {
      throw WorkerFailure.notStarted(
          python,
          "it was not ready after " + START_TIMEOUT_SECONDS + " seconds",
          "The log has its output.",
          e);
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
      throw WorkerFailure.notStarted(python, "the start was interrupted", "Run it again.", e);
    } catch (ExecutionException e) {
      throw WorkerFailure.notStarted(
          python, "its output cannot be read", "The log has its output.", e.getCause());
    }
    if (line == null) {
      throw endedTooEarly(python);
    }
    JsonNode ready = parseReady(python, line);
    if (!ready.path("ready").asBoolean()) {
      throw WorkerFailure.fromJson(ready.path("error"));
    }
    LOG.info("Pennon worker {} started: {}", process.pid(), line);
    WorkerLog.drain(output);
  }

  private static JsonNode parseReady(String python, String line) {
    try {
      return Messages.parse(line);
    } catch (WorkerFailure e) {
      throw WorkerFailure.notStarted(
          python, "it printed '" + line + "' instead of its state", WorkerInterpreter.REMEDY, e);
    }
  }

  private WorkerFailure endedTooEarly(String python) {
    int code = exitCode();
    String lastLine = log.lastLine();
    if (lastLine.contains("No module named") && lastLine.contains("pennon")) {
      return WorkerFailure.notStarted(
          python,
          "the package pennon is not installed for it",
          "Install it there (pip install pennon), on every machine that runs Spark executors, or"
              + " choose another interpreter with spark.pyspark.python.",
          null);
    }
    return WorkerFailure.notStarted(
        python, "it ended with code " + code + ": " + lastLine, "The log has its output.", null);
  }

  private int exitCode() {
    try {
      return process.waitFor(1, TimeUnit.SECONDS) ? process.exitValue() : -1;
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
      return -1;
    }
  }

  private void stop() {
    process.destroy();
    idle.forEach(WorkerProcess::close);
    idle.clear();
    delete(directory, socket);
  }

  private static void delete(Path directory, Path socket) {
    try {
      Files.deleteIfExists(socket);
      Files.deleteIfExists(directory);
    } catch (IOException e) {
      LOG.debug("Cannot delete {}", directory, e);
    }
  }
}
