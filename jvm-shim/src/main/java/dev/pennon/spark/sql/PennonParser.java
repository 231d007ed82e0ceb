package dev.pennon.spark.sql;

import static dev.pennon.spark.compat.Sequences.items;

import dev.pennon.spark.catalog.PartitionFieldChange;
import java.util.List;
import java.util.Optional;
import org.apache.spark.sql.catalyst.FunctionIdentifier;
import org.apache.spark.sql.catalyst.TableIdentifier;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.parser.ParameterContext;
import org.apache.spark.sql.catalyst.parser.ParseException;
import org.apache.spark.sql.catalyst.parser.ParserInterface;
import org.apache.spark.sql.catalyst.parser.SqlStatementSplitResult;
import org.apache.spark.sql.catalyst.parser.TemporalIdentifier;
import org.apache.spark.sql.catalyst.plans.logical.CreateTable;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.SetTableProperties;
import org.apache.spark.sql.connector.expressions.NamedReference;
import org.apache.spark.sql.connector.expressions.Transform;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.StructType;
import scala.collection.immutable.Seq;

/** Spark's parser, and the statements about partition fields and write orders besides. */
public final class PennonParser implements ParserInterface {
  private final ParserInterface delegate;

  public PennonParser(ParserInterface delegate) {
    this.delegate = delegate;
  }

  @Override
  public LogicalPlan parsePlan(String sql) throws ParseException {
    Optional<LogicalPlan> own = ownPlan(sql);
    return own.isPresent() ? own.get() : delegate.parsePlan(sql);
  }

  @Override
  public LogicalPlan parsePlanWithParameters(String sql, ParameterContext parameters)
      throws ParseException {
    Optional<LogicalPlan> own = ownPlan(sql);
    return own.isPresent() ? own.get() : delegate.parsePlanWithParameters(sql, parameters);
  }

  private Optional<LogicalPlan> ownPlan(String sql) throws ParseException {
    Optional<PartitionFieldStatement> field = PartitionFieldStatement.recognise(sql);
    if (field.isPresent()) {
      return Optional.of(plan(field.get()));
    }
    Optional<WriteOrderStatement> order = WriteOrderStatement.recognise(sql);
    return order.isPresent()
        ? Optional.of(new AlterPennonTable(table(order.get().table()), order.get().change()))
        : Optional.empty();
  }

  /** The table of an ALTER TABLE, as Spark's parser reads its name in another one. */
  private LogicalPlan table(String name) throws ParseException {
    LogicalPlan alter =
        delegate.parsePlan("ALTER TABLE " + name + " SET TBLPROPERTIES ('partition' = 'field')");
    return ((SetTableProperties) alter).table();
  }

  /** Spark's parser reads the table's name and the transforms, in statements made for the purpose. */
  private LogicalPlan plan(PartitionFieldStatement statement) throws ParseException {
    Transform transform =
        statement.transform() == null ? null : transform(statement, statement.transform());
    PartitionFieldChange.Field field =
        statement.field() == null ? null : field(transform(statement, statement.field()));
    return new AlterPennonTable(
        table(statement.table()),
        new PartitionFieldChange(statement.action(), transform, field, statement.name()));
  }

  private static PartitionFieldChange.Field field(Transform transform) {
    boolean isName =
        transform.name().equals("identity")
            && transform.arguments()[0] instanceof NamedReference;
    return isName
        ? new PartitionFieldChange.Field(
            ((NamedReference) transform.arguments()[0]).fieldNames(), null)
        : new PartitionFieldChange.Field(null, transform);
  }

  private Transform transform(PartitionFieldStatement statement, String text) {
    LogicalPlan parsed;
    try {
      parsed = delegate.parsePlan("CREATE TABLE t (c INT) USING u PARTITIONED BY (" + text + ")");
    } catch (ParseException e) {
      throw statement.syntaxError(text, "it is neither a column nor a transform").raise();
    }
    List<Transform> transforms =
        parsed instanceof CreateTable create
            ? items(create.partitioning())
            : List.of();
    if (transforms.size() != 1) {
      throw statement.syntaxError(text, "it is neither a column nor a transform").raise();
    }
    return transforms.get(0);
  }

  @Override
  public Expression parseExpression(String sql) throws ParseException {
    return delegate.parseExpression(sql);
  }

  @Override
  public TableIdentifier parseTableIdentifier(String sql) throws ParseException {
    return delegate.parseTableIdentifier(sql);
  }

  @Override
  public FunctionIdentifier parseFunctionIdentifier(String sql) throws ParseException {
    return delegate.parseFunctionIdentifier(sql);
  }

  @Override
  public Seq<String> parseMultipartIdentifier(String sql) throws ParseException {
    return delegate.parseMultipartIdentifier(sql);
  }

  /** Spark 4.3 asks for it; older ones have not got its type and never do. */
  @Override
  public TemporalIdentifier parseTemporalTableIdentifier(String sql) throws ParseException {
    return delegate.parseTemporalTableIdentifier(sql);
  }

  @Override
  public LogicalPlan parseQuery(String sql) throws ParseException {
    return delegate.parseQuery(sql);
  }

  @Override
  public StructType parseRoutineParam(String sql) throws ParseException {
    return delegate.parseRoutineParam(sql);
  }

  /** Asked for by Spark 4.3 alone, as above. */
  @Override
  public SqlStatementSplitResult splitStatements(String sql) {
    return delegate.splitStatements(sql);
  }

  @Override
  public StructType parseTableSchema(String sql) throws ParseException {
    return delegate.parseTableSchema(sql);
  }

  @Override
  public DataType parseDataType(String sql) throws ParseException {
    return delegate.parseDataType(sql);
  }
}
