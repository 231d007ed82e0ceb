package dev.pennon.spark.sql;

import static dev.pennon.spark.compat.Sequences.items;

import com.fasterxml.jackson.databind.node.ArrayNode;
import dev.pennon.spark.worker.Messages;
import org.apache.spark.sql.catalyst.expressions.Alias;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.NamedExpression;
import scala.collection.immutable.Seq;

/** Lists of columns as the worker is told them: by expression ids. */
final class OutlinedColumns {
  private OutlinedColumns() {}

  static ArrayNode attributes(Seq<Expression> expressions) {
    ArrayNode ids = Messages.array();
    for (Expression expression : items(expressions)) {
      if (expression instanceof Attribute attribute) {
        ids.add(attribute.exprId().id());
      }
    }
    return ids;
  }

  static ArrayNode values(Seq<NamedExpression> expressions) {
    ArrayNode values = Messages.array();
    for (NamedExpression named : items(expressions)) {
      Expression value = named instanceof Alias alias ? alias.child() : (Expression) named;
      values
          .addArray()
          .add(named.exprId().id())
          .add(FragmentText.ofValue(value))
          .add(Messages.parse(value.dataType().json()));
    }
    return values;
  }

  static ArrayNode renames(Seq<NamedExpression> expressions) {
    ArrayNode pairs = Messages.array();
    for (NamedExpression expression : items(expressions)) {
      if (expression instanceof Attribute a) {
        pairs.add(Messages.array().add(a.exprId().id()).add(a.exprId().id()));
      } else if (expression instanceof Alias alias && alias.child() instanceof Attribute a) {
        pairs.add(Messages.array().add(alias.exprId().id()).add(a.exprId().id()));
      }
    }
    return pairs;
  }
}
