package dev.pennon.spark.compat;

import java.util.ArrayList;
import java.util.List;
import scala.collection.immutable.Seq;
import scala.jdk.javaapi.CollectionConverters;

/** Scala's sequences, of which plans are made, from Java's lists and as such. */
public final class Sequences {
  private Sequences() {}

  public static <T> List<T> items(scala.collection.Seq<T> sequence) {
    return CollectionConverters.asJava(sequence);
  }

  public static <T> Seq<T> sequence(List<? extends T> items) {
    return CollectionConverters.asScala(new ArrayList<T>(items)).toSeq();
  }

  public static <T> Seq<T> empty() {
    return sequence(List.of());
  }

  @SafeVarargs
  public static <T> Seq<T> appended(Seq<? extends T> sequence, T... last) {
    List<T> all = new ArrayList<>(items(sequence));
    for (T item : last) {
      all.add(item);
    }
    return sequence(all);
  }
}
