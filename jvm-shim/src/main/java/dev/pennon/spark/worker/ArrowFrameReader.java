package dev.pennon.spark.worker;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.ReadableByteChannel;

/** The Arrow frames of one reply as one stream of bytes, until the end frame. */
final class ArrowFrameReader implements ReadableByteChannel {
  private final WorkerConnection connection;
  private int remaining;
  private boolean ended;
  private boolean open = true;

  ArrowFrameReader(WorkerConnection connection) {
    this.connection = connection;
  }

  @Override
  public int read(ByteBuffer target) throws IOException {
    if (!target.hasRemaining()) {
      return 0;
    }
    while (remaining == 0) {
      if (ended) {
        return -1;
      }
      remaining = connection.nextArrowFrame();
      ended = remaining < 0;
      remaining = Math.max(remaining, 0);
    }
    int count = connection.readArrow(target, remaining);
    remaining -= count;
    return count;
  }

  @Override
  public boolean isOpen() {
    return open;
  }

  @Override
  public void close() {
    open = false;
  }
}
