package dev.pennon.spark.functions;

import java.util.List;
import java.util.Locale;
import java.util.Optional;
import java.util.function.Function;
import java.util.stream.Stream;
import org.apache.spark.sql.connector.catalog.functions.BoundFunction;
import org.apache.spark.sql.connector.catalog.functions.UnboundFunction;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.StringType;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;

/** The functions of the catalog, by name. */
public final class Transforms {
  private static final String TRUNCATE_PREFIX = "truncate_";

  private Transforms() {}

  /**
   * A function that is not bound yet.
   *
   * @param bound gives it for argument types, or a complaint that says which types it takes
   */
  private record Unbound(
      String name, int arity, String signature, Function<DataType[], BoundFunction> bound)
      implements UnboundFunction {
    private static final long serialVersionUID = 1L;

    @Override
    public BoundFunction bind(StructType input) {
      DataType[] types =
          Stream.of(input.fields()).map(StructField::dataType).toArray(DataType[]::new);
      if (types.length != arity) {
        throw new UnsupportedOperationException(
            name + " takes " + arity + " argument(s), not " + types.length + ": " + signature);
      }
      return bound.apply(types);
    }

    @Override
    public String description() {
      return signature;
    }
  }

  /** Finds a function; {@code truncate_4} is {@code truncate} with its width in the name. */
  public static Optional<UnboundFunction> find(String name) {
    String lower = name.toLowerCase(Locale.ROOT);
    if (lower.equals("bucket")) {
      return unbound(lower, 2, "bucket(num_buckets, column)", types -> Bucket.bind(types[1]));
    }
    if (lower.equals("truncate")) {
      return unbound(lower, 2, "truncate(width, column)", types -> new Truncate.WithWidth(types[1]));
    }
    for (TimePart part : TimePart.values()) {
      if (lower.equals(part.functionName())) {
        return unbound(lower, 1, lower + "(column)", types -> TimeFunction.bind(part, types[0]));
      }
    }
    return widthOf(lower)
        .flatMap(
            width -> unbound(lower, 1, lower + "(column)", types -> new Truncate(width, types[0])));
  }

  public static List<String> names() {
    Stream<String> times = Stream.of(TimePart.values()).map(TimePart::functionName);
    return Stream.concat(Stream.of("bucket", "truncate"), times).sorted().toList();
  }

  /** Whether a function is one of these, whose canonical name says all of it but its arguments. */
  public static boolean isTransform(BoundFunction function) {
    return function instanceof PennonFunction;
  }

  /** Says that a function has no value for a type; Spark then reports it or does without. */
  static UnsupportedOperationException wrongType(String function, DataType type, String expected) {
    return new UnsupportedOperationException(
        function + " takes " + expected + ", not " + type.simpleString());
  }

  /** Equal strings of another collation differ in bytes: no transform is a function of them. */
  static boolean isPlainString(DataType type) {
    return type instanceof StringType string && string.isUTF8BinaryCollation();
  }

  private static Optional<UnboundFunction> unbound(
      String name, int arity, String signature, Function<DataType[], BoundFunction> bound) {
    return Optional.of(new Unbound(name, arity, signature, bound));
  }

  private static Optional<Integer> widthOf(String name) {
    String digits = name.startsWith(TRUNCATE_PREFIX) ? name.substring(TRUNCATE_PREFIX.length()) : "";
    if (digits.isEmpty() || digits.length() > 9 || !digits.chars().allMatch(Character::isDigit)) {
      return Optional.empty();
    }
    int width = Integer.parseInt(digits);
    return width > 0 ? Optional.of(width) : Optional.empty();
  }
}
