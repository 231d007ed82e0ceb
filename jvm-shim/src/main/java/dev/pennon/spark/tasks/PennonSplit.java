package dev.pennon.spark.tasks;

import dev.pennon.spark.worker.SecretText;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.Set;
import java.util.stream.Collectors;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.connector.read.HasPartitionKey;

/**
 * One piece of work for a task, with the values of the reported keys.
 *
 * @param objectIds the partitions that it belongs to
 * @param tokens what the worker needs to read it: one per partition, or one for all of them; none
 *     when there is nothing to read
 * @param partitionKey one value per reported key
 */
public record PennonSplit(List<String> objectIds, List<SecretText> tokens, InternalRow partitionKey)
    implements HasPartitionKey {
  private static final long serialVersionUID = 3L;

  /** The partitions of a split that came with a plan, with commas between them, and its token. */
  public record PackedSplit(String objectIds, SecretText split) {}

  /** As the worker names it: its partitions, with commas between them, and one token. */
  public PennonSplit(String objectIds, SecretText token, InternalRow partitionKey) {
    this(List.of(objectIds.split(",")), List.of(token), partitionKey);
  }

  /** A split that comes with a plan. */
  public static PennonSplit packed(PackedSplit known) {
    return new PennonSplit(known.objectIds(), known.split(), new GenericInternalRow(0));
  }

  /** A key as Spark takes that of a split. */
  public static InternalRow keyRow(long key) {
    return new GenericInternalRow(new Object[] {key});
  }

  /** Nothing to read under a key; a scan without any such key could not join without a shuffle. */
  public static PennonSplit empty(InternalRow key) {
    return new PennonSplit(List.of(), List.of(), key);
  }

  /** Splits of one partition each that one task reads one after the other, under one key. */
  public static PennonSplit together(List<PennonSplit> splits, InternalRow key) {
    if (splits.size() == 1) {
      return new PennonSplit(splits.get(0).objectIds, splits.get(0).tokens, key);
    }
    List<String> objectIds = new ArrayList<>(splits.size());
    List<SecretText> tokens = new ArrayList<>(splits.size());
    for (PennonSplit split : splits) {
      objectIds.addAll(split.objectIds);
      tokens.addAll(split.tokens);
    }
    return new PennonSplit(objectIds, tokens, key);
  }

  /** A part of this split, as the worker names it. */
  public PennonSplit part(SecretText partToken) {
    return new PennonSplit(objectIds, List.of(partToken), partitionKey);
  }

  /** What still has rows when only these partitions have. */
  public Optional<PennonSplit> under(Set<String> possible) {
    if (objectIds.stream().noneMatch(possible::contains)) {
      return Optional.empty();
    }
    if (tokens.size() != objectIds.size()) {
      return Optional.of(this);
    }
    List<String> keptIds = new ArrayList<>();
    List<SecretText> keptTokens = new ArrayList<>();
    for (int i = 0; i < tokens.size(); i++) {
      if (possible.contains(objectIds.get(i))) {
        keptIds.add(objectIds.get(i));
        keptTokens.add(tokens.get(i));
      }
    }
    return Optional.of(new PennonSplit(keptIds, keptTokens, partitionKey));
  }

  public boolean isEmpty() {
    return tokens.isEmpty();
  }

  /** What the worker needs to read all of it; empty when there is nothing to read. */
  String token() {
    return switch (tokens.size()) {
      case 0 -> "";
      case 1 -> tokens.get(0).text();
      default -> tokens.stream().map(SecretText::text).collect(Collectors.joining(",", "[", "]"));
    };
  }
}
