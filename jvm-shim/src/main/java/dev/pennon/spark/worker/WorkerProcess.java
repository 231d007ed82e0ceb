package dev.pennon.spark.worker;

import com.fasterxml.jackson.databind.JsonNode;
import dev.pennon.spark.failures.WorkerFailure;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.net.StandardProtocolFamily;
import java.net.UnixDomainSocketAddress;
import java.nio.channels.SocketChannel;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentLinkedDeque;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.concurrent.locks.ReentrantLock;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The Python worker of this JVM: one process, started on first use and again when it died.
 *
 * <p>A worker that computes what nobody waits for any more, and cannot stop that, retires: it ends
 * what others wait for, and a fresh process takes what comes. One that says nothing for a long time
 * is ended, for the requests that hang on it.
 *
 * <p>Its standard input stays open as long as this JVM lives; the worker ends when it closes, so
 * that it never outlives a JVM, not even a killed one.
 */
public final class WorkerProcess {
  private static final Logger LOG = LoggerFactory.getLogger(WorkerProcess.class);
  private static final int START_TIMEOUT_SECONDS = 60;
  private static final int MAX_IDLE_CONNECTIONS = 32;

  /** How long a process that takes no connections any more may need to be gone. */
  private static final int END_SECONDS = 3;

  private static final ReentrantLock STARTING = new ReentrantLock();
  private static final Set<Long> RETIRED = ConcurrentHashMap.newKeySet();
  private static volatile WorkerProcess current;

  static {
    Runtime.getRuntime()
        .addShutdownHook(new Thread(WorkerProcess::stopCurrent, "pennon-worker-stop"));
  }

  private final Process process;
  private final WorkerLog log;
  private volatile Path socket;
  private final ConcurrentLinkedDeque<SocketChannel> idle = new ConcurrentLinkedDeque<>();
  private volatile boolean isRetired;
  private volatile long heardNanos = System.nanoTime();

  private WorkerProcess(Process process) {
    this.process = process;
    this.log = new WorkerLog(process.getErrorStream());
  }

  /** The worker of this JVM, started if there is none alive. */
  public static WorkerProcess shared() {
    WorkerProcess worker = current;
    return worker != null && worker.takesRequests() ? worker : started(WorkerInterpreter.choose());
  }

  private static WorkerProcess started(String python) {
    try {
      // A task that is killed while another one starts the worker does not wait for it.
      STARTING.lockInterruptibly();
    } catch (InterruptedException e) {
      throw interrupted(python, e);
    }
    try {
      if (current == null || !current.takesRequests()) {
        if (current != null && !current.isRetired) {
          LOG.warn("The Pennon worker ended with code {}; starting it again", current.exitCode());
          current.stop();
        }
        current = start(python);
      }
      return current;
    } finally {
      STARTING.unlock();
    }
  }

  private boolean takesRequests() {
    return !isRetired && process.isAlive();
  }

  private static void stopCurrent() {
    WorkerProcess worker = current;
    if (worker != null) {
      worker.stop();
    }
  }

  /** Starts the worker in the background, so that the first query finds it ready. */
  public static void startEarly() {
    String python = WorkerInterpreter.choose();
    WorkerLog.inBackground(
        "pennon-worker-start",
        () -> {
          try {
            started(python);
          } catch (WorkerFailure e) {
            LOG.debug("The Pennon worker did not start early", e);
          }
        });
  }

  public long pid() {
    return process.pid();
  }

  /** A connection to the worker of this JVM; one that is about to end is waited for. */
  static WorkerConnection connected() {
    WorkerProcess worker = shared();
    try {
      return worker.connection();
    } catch (WorkerFailure failure) {
      if (!worker.endsSoon()) {
        throw failure;
      }
      return shared().connection();
    }
  }

  /** An idle connection, or a new one. */
  private WorkerConnection connection() {
    SocketChannel pooled = idle.pollFirst();
    try {
      return new WorkerConnection(this, pooled == null ? connect() : pooled);
    } catch (IOException e) {
      throw WorkerFailure.lost(
          "cannot connect to process " + process.pid() + ": " + e.getMessage(), e);
    }
  }

  /** Whether the process is gone, or goes while it is waited for. */
  boolean endsSoon() {
    try {
      return process.waitFor(END_SECONDS, TimeUnit.SECONDS);
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
      return false;
    }
  }

  void keep(SocketChannel channel) {
    if (idle.size() >= MAX_IDLE_CONNECTIONS || !takesRequests()) {
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

  /** Without -P a file in the working folder could stand in for a module of the worker. */
  private static WorkerProcess start(String python) {
    String jvm = WorkerStart.describeJvm(RETIRED);
    WorkerProcess worker;
    try {
      worker =
          new WorkerProcess(
              new ProcessBuilder(python, "-P", "-m", "pennon.worker", "--jvm", jvm).start());
    } catch (IOException e) {
      throw WorkerFailure.notStarted(python, "it cannot be run (" + e.getMessage() + ")", e);
    }
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
          python, "it was not ready after " + START_TIMEOUT_SECONDS + " seconds", e);
    } catch (InterruptedException e) {
      throw interrupted(python, e);
    } catch (ExecutionException e) {
      throw WorkerFailure.notStarted(python, "its output cannot be read", e.getCause());
    }
    if (line == null) {
      throw endedTooEarly(python);
    }
    socket = WorkerStart.socketOf(parseReady(python, line), python);
    process.onExit().thenRun(this::deleteSocket);
    LOG.info("Pennon worker {} started: {}", process.pid(), line);
    WorkerLog.listen(output, this::heard);
    WorkerWatch.begin(this);
  }

  /** A line that the worker says of itself. */
  private void heard(String line) {
    heardNanos = System.nanoTime();
    if (Messages.parse(line).path("retired").asBoolean()) {
      LOG.warn("Pennon worker {} computes what was cancelled: another one takes what comes", pid());
      RETIRED.add(pid());
      process.onExit().thenRun(() -> RETIRED.remove(pid()));
      isRetired = true;
      idle.forEach(WorkerProcess::close);
      idle.clear();
    }
  }

  boolean isAlive() {
    return process.isAlive();
  }

  /** Seconds since the worker said that it lives. */
  long silentSeconds() {
    return TimeUnit.NANOSECONDS.toSeconds(System.nanoTime() - heardNanos);
  }

  /** Ends a process that says nothing any more: requests that hang on it fail, and are repeated. */
  void end() {
    process.destroyForcibly();
  }

  private static WorkerFailure interrupted(String python, InterruptedException cause) {
    Thread.currentThread().interrupt();
    return WorkerFailure.notStarted(python, "the start was interrupted", cause);
  }

  private static JsonNode parseReady(String python, String line) {
    try {
      return Messages.parse(line);
    } catch (WorkerFailure e) {
      throw WorkerFailure.notStarted(python, "it printed '" + line + "' instead of its state", e);
    }
  }

  private WorkerFailure endedTooEarly(String python) {
    int code = exitCode();
    String lastLine = log.lastLine();
    if (lastLine.contains("No module named") && lastLine.contains("pennon")) {
      return WorkerFailure.notStarted(python, "the package pennon is not installed for it", null);
    }
    if (lastLine.contains("Unknown option: -P")) {
      return WorkerFailure.notStarted(python, "it is older than Python 3.11", null);
    }
    return WorkerFailure.notStarted(python, "it ended with code " + code + ": " + lastLine, null);
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
  }

  /** A worker that was killed has left it, and the folder that it made for it. */
  private void deleteSocket() {
    try {
      Files.deleteIfExists(socket);
      Files.deleteIfExists(socket.getParent());
    } catch (IOException e) {
      LOG.debug("Cannot delete {}", socket, e);
    }
  }
}
