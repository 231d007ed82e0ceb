package dev.pennon.spark.worker;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.ArrayList;
import java.util.List;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * A folder of its own for the worker's socket, which nobody but this user may enter.
 *
 * <p>The path of a Unix socket has at most 107 bytes. {@code java.io.tmpdir} of a container on YARN
 * is longer than that, so the system's folders for temporary files stand in.
 */
record SocketFolder(Path path) {
  private static final Logger LOG = LoggerFactory.getLogger(SocketFolder.class);
  private static final int MAX_PATH_BYTES = 107;
  private static final String PREFIX = "pennon-";
  private static final String SOCKET = "worker.sock";
  /** What {@link Files#createTempDirectory} puts behind the prefix: a long without its sign. */
  private static final int RANDOM_BYTES = 20;

  /** Makes the folder in the first place that is short enough and can be written. */
  static SocketFolder create() throws IOException {
    List<String> refusals = new ArrayList<>();
    for (Path place : places()) {
      Path longest = place.resolve(PREFIX + "9".repeat(RANDOM_BYTES)).resolve(SOCKET);
      if (longest.toString().getBytes(StandardCharsets.UTF_8).length > MAX_PATH_BYTES) {
        refusals.add(place + " is too long for a socket");
        continue;
      }
      try {
        return new SocketFolder(
            Files.createTempDirectory(
                place,
                PREFIX,
                PosixFilePermissions.asFileAttribute(
                    PosixFilePermissions.fromString("rwx------"))));
      } catch (IOException e) {
        refusals.add(place + " cannot be written (" + e.getClass().getSimpleName() + ")");
      }
    }
    throw new IOException(String.join(", ", refusals));
  }

  /** The user's own choice first; XDG_RUNTIME_DIR late, for it goes when its user logs out. */
  private static List<Path> places() {
    List<Path> places = new ArrayList<>();
    places.add(Path.of(System.getProperty("java.io.tmpdir")).toAbsolutePath());
    places.add(Path.of("/tmp"));
    places.add(Path.of("/var/tmp"));
    String runtime = System.getenv("XDG_RUNTIME_DIR");
    if (runtime != null && !runtime.isBlank()) {
      places.add(Path.of(runtime).toAbsolutePath());
    }
    places.add(Path.of("/dev/shm"));
    return places.stream().distinct().toList();
  }

  Path socket() {
    return path.resolve(SOCKET);
  }

  void delete() {
    try {
      Files.deleteIfExists(socket());
      Files.deleteIfExists(path);
    } catch (IOException e) {
      LOG.debug("Cannot delete {}", path, e);
    }
  }
}
