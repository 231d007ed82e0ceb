package dev.pennon.spark.sql;

import static dev.pennon.spark.compat.Sequences.sequence;

import dev.pennon.spark.PennonCatalog;
import dev.pennon.spark.catalog.WriteOrderChange;
import dev.pennon.spark.worker.WorkerFailure;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import org.apache.spark.sql.catalyst.analysis.ResolvedTable;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.AttributeSet;
import org.apache.spark.sql.catalyst.plans.logical.AlterTableCommand;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Statistics;
import org.apache.spark.sql.catalyst.trees.TreePattern;
import org.apache.spark.sql.connector.catalog.TableChange;
import scala.Enumeration;
import scala.collection.immutable.IndexedSeq;
import scala.collection.immutable.Seq;

/**
 * The command behind {@code ALTER TABLE … PARTITION FIELD} and {@code … WRITE ORDERED BY}: an ALTER
 * TABLE command of Spark with a change of Pennon's.
 *
 * <p>So Spark resolves the table, calls {@code alterTable} of its catalog and refreshes what it has
 * cached of the table, as for every other ALTER TABLE. What Scala's traits give a class of Scala is
 * written out here; their default methods cannot be called from Java.
 */
public final class AlterPennonTable extends LogicalPlan implements AlterTableCommand {
  private static final long serialVersionUID = 1L;

  private final transient LogicalPlan table;
  private final transient TableChange change;

  /** Spark copies a plan through the constructor that takes its product's elements. */
  public AlterPennonTable(LogicalPlan table, TableChange change) {
    this.table = table;
    this.change = change;
  }

  @Override
  public LogicalPlan table() {
    return table;
  }

  @Override
  public Seq<TableChange> changes() {
    return sequence(List.<TableChange>of(change));
  }

  @Override
  public LogicalPlan withNewChildInternal(LogicalPlan newTable) {
    if (newTable instanceof ResolvedTable resolved
        && !(resolved.catalog() instanceof PennonCatalog)) {
      throw notOurs(resolved).raise();
    }
    return new AlterPennonTable(newTable, change);
  }

  @Override
  public LogicalPlan withNewChildrenInternal(IndexedSeq<LogicalPlan> newChildren) {
    return withNewChildInternal(newChildren.apply(0));
  }

  @Override
  public LogicalPlan child() {
    return table;
  }

  @Override
  public Seq<LogicalPlan> children() {
    return sequence(List.of(table));
  }

  @Override
  public Seq<Attribute> output() {
    return sequence(List.of());
  }

  @Override
  public AttributeSet producedAttributes() {
    return outputSet();
  }

  @Override
  public Statistics stats() {
    return Statistics.DUMMY();
  }

  @Override
  public Seq<Enumeration.Value> nodePatterns() {
    return sequence(List.of(TreePattern.COMMAND()));
  }

  /** Scala sets a trait's field through this; the value here is fixed. */
  @Override
  public void org$apache$spark$sql$catalyst$plans$logical$Command$_setter_$nodePatterns_$eq(
      Seq<Enumeration.Value> patterns) {}

  @Override
  public int productArity() {
    return 2;
  }

  @Override
  public Object productElement(int index) {
    return index == 0 ? table : change;
  }

  @Override
  public boolean canEqual(Object other) {
    return other instanceof AlterPennonTable;
  }

  @Override
  public boolean equals(Object other) {
    return other instanceof AlterPennonTable command
        && table.equals(command.table)
        && change.equals(command.change);
  }

  @Override
  public int hashCode() {
    return Objects.hash(table, change);
  }

  private WorkerFailure notOurs(ResolvedTable resolved) {
    String catalog = resolved.catalog().name();
    String condition =
        change instanceof WriteOrderChange
            ? "WRITE_ORDER_NOT_SUPPORTED"
            : "PARTITION_FIELDS_NOT_SUPPORTED";
    return new WorkerFailure(
        condition,
        "["
            + condition
            + "] Cannot "
            + change
            + " of "
            + resolved.name()
            + ": catalog "
            + catalog
            + " is not a Pennon catalog. Name a table of a catalog whose class is "
            + PennonCatalog.class.getName()
            + ".",
        Map.of("table", resolved.name(), "catalog", catalog),
        "0A000",
        null);
  }
}
