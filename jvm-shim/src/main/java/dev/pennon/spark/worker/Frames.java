package dev.pennon.spark.worker;

import dev.pennon.spark.failures.WorkerFailure;
import java.io.EOFException;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.SocketChannel;

/**
 * Frames on a socket: one byte kind, four bytes big-endian length, payload.
 *
 * <p>The channel blocks and is interruptible: an interrupted task closes it, which cancels the
 * request in the worker.
 */
final class Frames {
  static final byte JSON = 'J';
  static final byte ARROW = 'A';
  static final byte END = 'E';
  static final byte ERROR = 'X';

  private static final int HEADER_BYTES = 5;
  /** A JSON frame beyond this is a broken stream, not a message. */
  private static final int MAX_JSON_BYTES = 1 << 30;

  private final SocketChannel channel;
  private final ByteBuffer header = ByteBuffer.allocateDirect(HEADER_BYTES);

  Frames(SocketChannel channel) {
    this.channel = channel;
  }

  /** Kind and payload length of the next frame. */
  record Head(byte kind, int length) {}

  Head readHead() throws IOException {
    ByteBuffer head = ByteBuffer.allocate(HEADER_BYTES);
    readFully(head);
    head.flip();
    byte kind = head.get();
    int length = head.getInt();
    if (length < 0 || (kind != ARROW && length > MAX_JSON_BYTES)) {
      throw WorkerFailure.protocol("a frame of kind " + kind + " says length " + length, null);
    }
    return new Head(kind, length);
  }

  byte[] readPayload(Head head) throws IOException {
    ByteBuffer payload = ByteBuffer.allocate(head.length());
    readFully(payload);
    return payload.array();
  }

  /** Reads into {@code target} at most {@code limit} bytes; at least one, or the stream is broken. */
  int readSome(ByteBuffer target, int limit) throws IOException {
    int end = target.limit();
    target.limit(Math.min(end, target.position() + limit));
    try {
      int count = channel.read(target);
      if (count < 0) {
        throw new EOFException("the stream was cut off");
      }
      return count;
    } finally {
      target.limit(end);
    }
  }

  void write(byte kind, ByteBuffer payload) throws IOException {
    header.clear();
    header.put(kind).putInt(payload.remaining()).flip();
    ByteBuffer[] parts = {header, payload};
    while (header.hasRemaining() || payload.hasRemaining()) {
      channel.write(parts);
    }
  }

  private void readFully(ByteBuffer target) throws IOException {
    while (target.hasRemaining()) {
      if (channel.read(target) < 0) {
        throw new EOFException("the stream was cut off");
      }
    }
  }
}
