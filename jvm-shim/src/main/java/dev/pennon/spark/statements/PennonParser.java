package dev.pennon.spark.statements;

import static dev.pennon.spark.compat.Sequences.items;

import dev.pennon.spark.catalog.WorkerCatalog;
import dev.pennon.spark.compat.Columns;
import dev.pennon.spark.compat.SessionCatalogs;
import dev.pennon.spark.failures.WorkerFailure;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.catalyst.FunctionIdentifier;
import org.apache.spark.sql.catalyst.TableIdentifier;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.parser.ParameterContext;
import org.apache.spark.sql.catalyst.parser.ParseException;
import org.apache.spark.sql.catalyst.parser.ParserInterface;
import org.apache.spark.sql.catalyst.parser.SqlStatementSplitResult;
import org.apache.spark.sql.catalyst.parser.TemporalIdentifier;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.internal.SQLConf;
import org.apache.spark.sql.internal.VariableSubstitution;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.StructType;
import scala.collection.immutable.Seq;

/**
 * The session's parser, which also reads the statements about Pennon's partition fields, tags and
 * write orders. Statements about tables of other catalogs reach it as they were written.
 */
public final class PennonParser implements ParserInterface {
  private final SparkSession session;
  private final ParserInterface delegate;

  public PennonParser(SparkSession session, ParserInterface delegate) {
    // The session is not whole yet: this parser is a part of what is being built.
    this.session = session;
    this.delegate = delegate;
  }

  @Override
  public LogicalPlan parsePlan(String sql) throws ParseException {
    return delegate.parsePlan(inWordsOfSpark(session, sql));
  }

  @Override
  public LogicalPlan parsePlanWithParameters(String sql, ParameterContext parameters)
      throws ParseException {
    return delegate.parsePlanWithParameters(inWordsOfSpark(session, sql), parameters);
  }

  /** A text whose statements about tables of Pennon are in words that Spark's parser reads. */
  static String inWordsOfSpark(SparkSession session, String sql) {
    String substituted = sql.contains("${") ? new VariableSubstitution().substitute(sql) : sql;
    String rewritten = TableStatements.inWordsOfSpark(session, substituted);
    // What the next parser reads itself it is given untouched.
    return rewritten.equals(substituted) ? sql : rewritten;
  }

  /** The plan of the first of these texts that this Spark reads. */
  public static LogicalPlan plan(SparkSession session, String... texts) {
    ParseException unread = null;
    for (String text : texts) {
      try {
        return session.sessionState().sqlParser().parsePlan(text);
      } catch (ParseException e) {
        unread = e;
      }
    }
    throw WorkerFailure.sneak(unread);
  }

  /** The full name of a table of a Pennon catalog, from its name in SQL; empty for all others. */
  public static Optional<String> fullName(SparkSession session, String table) {
    return fullPath(session, table).map(path -> Columns.quoted(path.toArray(String[]::new)));
  }

  /** The same name as its parts, the catalog first. */
  public static Optional<List<String>> fullPath(SparkSession session, String table) {
    List<String> parts;
    try {
      parts = items(session.sessionState().sqlParser().parseMultipartIdentifier(table));
    } catch (ParseException notAName) {
      return Optional.empty();
    }
    SessionCatalogs catalogs = SessionCatalogs.of(session);
    if (parts.size() > 1 && catalogs.has(parts.get(0))) {
      // Asked for by its class: another catalog is not loaded to read a statement.
      boolean isOurs = WorkerCatalog.isConfigured(SQLConf.get(), parts.get(0));
      return isOurs ? Optional.of(parts) : Optional.empty();
    }
    if (!(catalogs.current() instanceof WorkerCatalog current)) {
      return Optional.empty();
    }
    List<String> full = new ArrayList<>(List.of(current.name()));
    if (parts.size() == 1) {
      full.addAll(List.of(catalogs.currentNamespace()));
    }
    full.addAll(parts);
    return Optional.of(full);
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
