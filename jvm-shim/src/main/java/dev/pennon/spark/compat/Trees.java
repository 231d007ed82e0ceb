package dev.pennon.spark.compat;

import static dev.pennon.spark.compat.Sequences.items;

import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.List;
import java.util.function.Function;
import org.apache.spark.sql.catalyst.expressions.And;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.trees.TreeNode;

/** Walks over Spark's trees of operators and of expressions. */
public final class Trees {
  private Trees() {}

  /** All nodes of a tree, each before those below it. */
  public static <T extends TreeNode<T>> List<T> nodes(T root) {
    return List.copyOf(items(root.map(node -> node)));
  }

  /** What a condition demands, each by itself and in order. */
  public static List<Expression> conjuncts(Expression condition) {
    return operands(
        condition, part -> part instanceof And and ? List.of(and.left(), and.right()) : List.of());
  }

  /**
   * What a connector such as AND joins, in order, however deep the tree of it is.
   *
   * @param joined the two or more that a part joins by the same connector; none for any other part
   */
  public static <E> List<E> operands(E root, Function<E, List<E>> joined) {
    Deque<E> waiting = new ArrayDeque<>(List.of(root));
    List<E> operands = new ArrayList<>();
    while (!waiting.isEmpty()) {
      E next = waiting.pop();
      List<E> below = joined.apply(next);
      if (below.isEmpty()) {
        operands.add(next);
      }
      for (int at = below.size() - 1; at >= 0; at--) {
        waiting.push(below.get(at));
      }
    }
    return operands;
  }
}
