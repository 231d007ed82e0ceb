package dev.pennon.spark.worker;

import java.nio.ByteBuffer;
import java.nio.channels.WritableByteChannel;

/** A stream of Arrow bytes upward, in frames; closing it sends the end frame. */
final class ArrowFrameWriter implements WritableByteChannel {
  private static final int FRAME_BYTES = 1 << 20;

  private final WorkerConnection connection;
  private final ByteBuffer pending = ByteBuffer.allocateDirect(FRAME_BYTES);
  private boolean open = true;

  ArrowFrameWriter(WorkerConnection connection) {
    this.connection = connection;
  }

  @Override
  public int write(ByteBuffer source) {
    int count = source.remaining();
    if (count > pending.remaining()) {
      flush();
    }
    if (count > pending.remaining()) {
      connection.writeFrame(Frames.ARROW, source);
    } else {
      pending.put(source);
    }
    return count;
  }

  @Override
  public boolean isOpen() {
    return open;
  }

  @Override
  public void close() {
    if (open) {
      open = false;
      flush();
      connection.endArrowOutput();
    }
  }

  private void flush() {
    if (pending.position() > 0) {
      pending.flip();
      connection.writeFrame(Frames.ARROW, pending);
      pending.clear();
    }
  }
}
