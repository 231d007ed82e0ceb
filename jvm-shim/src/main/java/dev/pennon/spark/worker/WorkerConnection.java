package dev.pennon.spark.worker;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import dev.pennon.spark.failures.WorkerFailure;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.ReadableByteChannel;
import java.nio.channels.SocketChannel;
import java.nio.channels.WritableByteChannel;
import java.util.Optional;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.FutureTask;

/**
 * One connection to the worker, with one request on it at a time.
 *
 * <p>An exchange is: a request, perhaps an Arrow stream upward, a reply, perhaps an Arrow stream
 * downward. {@link #release} after a complete exchange keeps the connection for the next one;
 * {@link #close} before that cancels the request. A connection belongs to one thread, but {@code
 * close} may come from any.
 */
public final class WorkerConnection implements AutoCloseable {
  private enum State {
    IDLE, REQUESTED, STREAMING_UP, STREAMING_DOWN, RELEASED, BROKEN
  }

  private final WorkerProcess worker;
  private final SocketChannel channel;
  private final Frames frames;
  private volatile State state = State.IDLE;
  private String operation;
  /** The worker answers an upward stream that it refuses without reading the rest of it. */
  private boolean streamedUp;
  /** What the worker told behind the last stream; null for nothing. */
  private JsonNode streamEnd;

  WorkerConnection(WorkerProcess worker, SocketChannel channel) {
    this.worker = worker;
    this.channel = channel;
    this.frames = new Frames(channel);
  }

  /** A connection to this JVM's worker, which is started if there is none. */
  public static WorkerConnection open() {
    return WorkerProcess.connected();
  }

  /** Sends one request that has no Arrow stream, on a connection of its own, and gives the reply. */
  public static JsonNode exchange(ObjectNode request) {
    Asked asked = ask(request);
    asked.connection().release();
    return asked.reply();
  }

  /** As {@link #exchange}, on the driver: a failure is thrown as the AnalysisException that fits it. */
  public static JsonNode answer(ObjectNode request) {
    try {
      return exchange(request);
    } catch (WorkerFailure failure) {
      throw failure.raise();
    }
  }

  /** A reply and the connection that it came on, on which an Arrow stream may follow. */
  public record Asked(WorkerConnection connection, JsonNode reply) {}

  /**
   * Sends a request on a connection of its own and waits for the reply.
   *
   * <p>A worker that ends itself may have taken the request on its last moment: one that changes
   * nothing is sent once more, to the next worker.
   */
  public static Asked ask(ObjectNode request) {
    WorkerConnection connection = open();
    try {
      return connection.asked(request);
    } catch (WorkerFailure failure) {
      boolean isRepeatable = Wire.isRepeatable(request.path("op").asText());
      if (!failure.is(WorkerFailure.LOST)
          || !isRepeatable
          || Thread.currentThread().isInterrupted()
          || KilledTasks.isKilled()
          || !connection.worker.endsSoon()) {
        throw failure;
      }
      return open().asked(request);
    }
  }

  /** The reply to a request; after a refusal the connection is given back. */
  private Asked asked(ObjectNode request) {
    try {
      return new Asked(this, call(request));
    } catch (WorkerFailure failure) {
      release();
      throw failure;
    }
  }

  /**
   * Runs exchanges so that an interrupt of the calling thread neither ends nor hides the answer.
   *
   * <p>An interrupt closes a socket that its thread waits on. So another thread waits, and the
   * interrupt is handed on once the answer is there: whether a commit was made is never unknown
   * because somebody pressed Cancel.
   */
  public static JsonNode uninterruptibly(Callable<JsonNode> exchanges) {
    FutureTask<JsonNode> answer = new FutureTask<>(exchanges);
    WorkerLog.inBackground("pennon-uninterruptible", answer);
    boolean interrupted = false;
    try {
      while (true) {
        try {
          return answer.get();
        } catch (InterruptedException e) {
          interrupted = true;
        } catch (ExecutionException e) {
          throw e.getCause() instanceof WorkerFailure failure
              ? failure
              : WorkerFailure.protocol(String.valueOf(e.getCause()), e.getCause());
        }
      }
    } finally {
      if (interrupted) {
        Thread.currentThread().interrupt();
      }
    }
  }

  /** Sends a request and waits for its JSON reply; an Arrow stream may follow. */
  public JsonNode call(ObjectNode request) {
    send(request);
    return receive();
  }

  public void send(ObjectNode request) {
    expect(State.IDLE, "send a request");
    operation = request.path("op").asText();
    Wire.checkRequest(operation, request);
    state = State.REQUESTED;
    streamedUp = false;
    KilledTasks.watch(this);
    writeFrame(Frames.JSON, ByteBuffer.wrap(Messages.toBytes(request)));
  }

  public JsonNode receive() {
    expect(State.REQUESTED, "wait for a reply");
    try {
      Frames.Head head = frames.readHead();
      byte[] payload = frames.readPayload(head);
      if (head.kind() == Frames.ERROR) {
        state = streamedUp ? State.BROKEN : State.IDLE;
        throw WorkerFailure.fromJson(Messages.fromBytes(payload));
      }
      if (head.kind() != Frames.JSON) {
        throw unexpected(head.kind());
      }
      JsonNode reply = Messages.fromBytes(payload);
      Wire.checkReply(operation, reply);
      state = reply.path("arrow").asBoolean() ? State.STREAMING_DOWN : State.IDLE;
      return reply;
    } catch (IOException e) {
      throw lost(e);
    }
  }

  /** The Arrow stream that follows the reply, copied as little as possible. */
  public ReadableByteChannel arrowChannel() {
    expect(State.STREAMING_DOWN, "read an Arrow stream");
    return new ArrowFrameReader(this);
  }

  /** The Arrow stream that follows the request; its close sends the end. */
  public WritableByteChannel arrowOutputChannel() {
    expect(State.REQUESTED, "write an Arrow stream");
    state = State.STREAMING_UP;
    streamedUp = true;
    return new ArrowFrameWriter(this);
  }

  /** Gives the connection back for the next request; closes it if its exchange is not complete. */
  public synchronized void release() {
    KilledTasks.forget(this);
    if (state == State.IDLE && channel.isOpen()) {
      // From here the channel belongs to whoever takes it next, under another object.
      state = State.RELEASED;
      worker.keep(channel);
    } else {
      close();
    }
  }

  /** Closes the connection unless it was released; the worker stops what it does for it. */
  @Override
  public synchronized void close() {
    if (state != State.RELEASED) {
      disconnect();
    }
  }

  private void disconnect() {
    KilledTasks.forget(this);
    state = State.BROKEN;
    try {
      channel.close();
    } catch (IOException e) {
      throw WorkerFailure.lost(String.valueOf(e.getMessage()), e);
    }
  }

  /** Payload length of the next Arrow frame, or -1 at the end of the stream. */
  int nextArrowFrame() {
    try {
      Frames.Head head = frames.readHead();
      switch (head.kind()) {
        case Frames.ARROW:
          return head.length();
        case Frames.END:
          if (head.length() > 0) {
            streamEnd = Messages.fromBytes(frames.readPayload(head));
            Wire.check("StreamEnd", streamEnd);
          }
          state = State.IDLE;
          return -1;
        case Frames.ERROR:
          WorkerFailure failure =
              WorkerFailure.fromJson(Messages.fromBytes(frames.readPayload(head)));
          state = State.IDLE;
          throw failure;
        default:
          throw unexpected(head.kind());
      }
    } catch (IOException e) {
      throw lost(e);
    }
  }

  /** What the rows of the stream that has ended took, as far as the worker told it. */
  public Optional<JsonNode> streamEnd() {
    return Optional.ofNullable(streamEnd);
  }

  int readArrow(ByteBuffer target, int limit) {
    try {
      return frames.readSome(target, limit);
    } catch (IOException e) {
      throw lost(e);
    }
  }

  void writeFrame(byte kind, ByteBuffer payload) {
    try {
      frames.write(kind, payload);
    } catch (IOException e) {
      throw failureBehind(e);
    }
  }

  void endArrowOutput() {
    writeFrame(Frames.END, ByteBuffer.allocate(0));
    state = State.REQUESTED;
  }

  /** A worker that refuses a stream says why and closes: its reason is better than a broken pipe. */
  private WorkerFailure failureBehind(IOException broken) {
    try {
      Frames.Head head = frames.readHead();
      if (head.kind() == Frames.ERROR) {
        WorkerFailure refusal = WorkerFailure.fromJson(Messages.fromBytes(frames.readPayload(head)));
        disconnect();
        return refusal;
      }
    } catch (IOException noReason) {
      broken.addSuppressed(noReason);
    }
    return lost(broken);
  }

  private WorkerFailure lost(IOException cause) {
    disconnect();
    String why = cause.getMessage();
    return WorkerFailure.lost(why == null ? cause.getClass().getSimpleName() : why, cause);
  }

  private WorkerFailure unexpected(byte kind) {
    disconnect();
    return WorkerFailure.protocol("a frame of kind '" + (char) kind + "' was not expected", null);
  }

  private void expect(State expected, String action) {
    if (state != expected) {
      throw WorkerFailure.protocol(
          "cannot " + action + " while the connection is " + state.name(), null);
    }
  }
}
