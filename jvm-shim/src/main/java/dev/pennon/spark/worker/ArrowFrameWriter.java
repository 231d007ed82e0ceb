package dev.pennon.spark.worker;

import java.io.OutputStream;
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

  OutputStream asStream() {
    ArrowFrameWriter sink = this;
    return new OutputStream() {
      @Override
      public void write(int value) {
        sink.write(ByteBuffer.wrap(new byte[] {(byte) value}));
      }

      @Override
      public void write(byte[] source, int offset, int length) {
        sink.write(ByteBuffer.wrap(source, offset, length));
      }

      @Override
      public void close() {
        sink.close();
      }
    };
  }
}
