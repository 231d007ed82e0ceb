package dev.pennon.spark.compat;

import static dev.pennon.spark.compat.Sequences.empty;

import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.apache.spark.sql.catalyst.expressions.Alias;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.AttributeReference;
import org.apache.spark.sql.catalyst.expressions.ExprId;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.GetStructField;
import org.apache.spark.sql.catalyst.expressions.NamedExpression;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.Metadata;
import org.apache.spark.sql.types.StructType;
import scala.Option;

/** Columns of a plan, fields of struct columns, and the names of both. */
public final class Columns {
  private Columns() {}

  /** A column that no plan has yet. */
  public static AttributeReference column(String name, DataType type, boolean isNullable) {
    return new AttributeReference(
        name, type, isNullable, Metadata.empty(), NamedExpression.newExprId(), empty());
  }

  /** A value as a column of this name and id. */
  public static Alias named(Expression value, String name, ExprId id) {
    return new Alias(value, name, id, empty(), Option.empty(), empty());
  }

  public static Expression valueOf(NamedExpression column) {
    return column instanceof Alias alias ? alias.child() : (Expression) column;
  }

  public static GetStructField field(Expression struct, String name) {
    int at = ((StructType) struct.dataType()).fieldIndex(name);
    return new GetStructField(struct, at, Option.apply(name));
  }

  /** A path of names as Spark's parser reads it back: each in backquotes. */
  public static String quoted(String... path) {
    return Stream.of(path)
        .map(name -> "`" + name.replace("`", "``") + "`")
        .collect(Collectors.joining("."));
  }

  /** The column that an expression is, or is a field of; null for any other. */
  public static Attribute of(Expression expression) {
    Expression column = expression;
    while (column instanceof GetStructField field) {
      column = field.child();
    }
    return column instanceof Attribute attribute ? attribute : null;
  }
}
