package dev.pennon.spark.read;

import java.util.LinkedHashMap;
import java.util.Map;
import java.util.stream.Stream;
import scala.jdk.javaapi.CollectionConverters;

/** The lines of EXPLAIN FORMATTED about a scan. */
public final class DetailLines {
  private DetailLines() {}

  /** Makes a name and a text of each line; texts of one name are joined. */
  public static scala.collection.immutable.Map<String, String> of(Stream<String> lines) {
    Map<String, String> named = new LinkedHashMap<>();
    lines
        .map(line -> line.split(": ", 2))
        .filter(pair -> pair.length == 2)
        .forEach(pair -> named.merge(pair[0], pair[1], (one, other) -> one + "; " + other));
    return scala.collection.immutable.Map.from(CollectionConverters.asScala(named));
  }
}
