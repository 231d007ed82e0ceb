package dev.pennon.spark.search;

import static dev.pennon.spark.compat.Sequences.items;

import dev.pennon.spark.catalog.WorkerCatalog;
import dev.pennon.spark.compat.SessionCatalogs;
import dev.pennon.spark.failures.WorkerFailure;
import dev.pennon.spark.statements.PennonParser;
import dev.pennon.spark.worker.Messages;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.apache.spark.sql.SparkSessionExtensions;
import org.apache.spark.sql.catalyst.CatalystTypeConverters;
import org.apache.spark.sql.catalyst.FunctionIdentifier;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.ExpressionInfo;
import org.apache.spark.sql.catalyst.expressions.FunctionTableSubqueryArgumentExpression;
import org.apache.spark.sql.catalyst.expressions.NamedArgumentExpression;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.classic.Dataset;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.connector.catalog.Identifier;
import org.apache.spark.sql.connector.catalog.Table;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation;
import scala.Option;
import scala.Tuple3;
import scala.collection.immutable.Seq;

/**
 * {@code vector_search('s.t', query_vector => array(…), …)} and its like as table functions: what
 * the worker finds is a table. The one that is searched is named by a text or by {@code
 * TABLE(s.t)}, whose WHERE chooses rows before the nearest ones are found.
 */
public final class SearchFunctions {
  private static final String[] NAMES = {"vector_search", "search", "search_text", "hybrid_search"};

  private SearchFunctions() {}

  /** Makes the functions known to a session. */
  public static void injectInto(SparkSessionExtensions extensions) {
    for (String name : NAMES) {
      extensions.injectTableFunction(
          new Tuple3<>(
              new FunctionIdentifier(name),
              new ExpressionInfo(SearchFunctions.class.getName(), name),
              arguments -> new Call(name, arguments).searched()));
    }
  }

  /** A call whose arguments are resolved. */
  private static final class Call {
    private final SparkSession session = (SparkSession) org.apache.spark.sql.SparkSession.active();
    private final String function;
    private final Map<String, String> arguments = new LinkedHashMap<>();
    private final List<String> conditions = new ArrayList<>();
    private final List<String> where = new ArrayList<>();
    private WorkerCatalog catalog;
    private Identifier identifier;
    private String version;

    Call(String function, Seq<Expression> given) {
      this.function = function;
      int place = 0;
      for (Expression argument : items(given)) {
        if (argument instanceof NamedArgumentExpression named) {
          take(named.key().toLowerCase(), named.value());
        } else {
          take(place == 0 ? "table" : String.valueOf(place - 1), argument);
          place++;
        }
      }
      if (identifier == null) {
        throw refused("nothing", "no table is named");
      }
    }

    LogicalPlan searched() {
      conditions.forEach(condition -> where.addAll(read(condition)));
      return relation(catalog.searched(identifier, version, function, arguments, where));
    }

    private void take(String name, Expression value) {
      if (name.equals("table") && value instanceof FunctionTableSubqueryArgumentExpression query) {
        takeTable(query.plan());
      } else if (!value.foldable()) {
        throw refused(value.sql(), "its " + name + " is no constant");
      } else if (name.equals("table")) {
        takeName(String.valueOf(value.eval(null)));
      } else if (name.equals("version")) {
        version = String.valueOf(value.eval(null));
      } else if ((name.equals("where") || name.equals("filter")) && value.eval(null) != null) {
        conditions.add(String.valueOf(value.eval(null)));
      } else {
        arguments.put(name, json(value));
      }
    }

    private void takeName(String name) {
      List<String> path =
          PennonParser.fullPath(session, name)
              .orElseThrow(() -> refused(name, "it is no table of a catalog of Pennon"));
      int last = path.size() - 1;
      identifier = Identifier.of(path.subList(1, last).toArray(String[]::new), path.get(last));
      catalog = (WorkerCatalog) SessionCatalogs.of(session).get(path.get(0));
    }

    private void takeTable(LogicalPlan plan) {
      SearchedTable searched =
          SearchedTable.of(plan)
              .filter(SearchedTable::isOfOwnColumns)
              .filter(below -> plan.schema().sameType(below.table().schema()))
              .orElseThrow(
                  () ->
                      refused(
                          "TABLE(…)",
                          "it is no table of Pennon, or has more than conditions that can be asked"
                              + " before a search"));
      catalog = searched.catalog();
      identifier = searched.identifier();
      version = searched.table().version();
      where.addAll(searched.where());
    }

    /** What the worker is asked for a condition: Spark reads it, in the session's time zone. */
    private List<String> read(String condition) {
      Table table =
          version == null ? catalog.loadTable(identifier) : catalog.loadTable(identifier, version);
      LogicalPlan filtered =
          Dataset.ofRows(session, relation(table)).filter(condition).queryExecution().analyzed();
      return SearchedTable.of(filtered)
          .map(SearchedTable::where)
          .orElseThrow(() -> refused(condition, "it is no condition that comes before a search"));
    }

    private LogicalPlan relation(Table rows) {
      return DataSourceV2Relation.create(rows, Option.apply(catalog), Option.apply(identifier));
    }

    private RuntimeException refused(String table, String why) {
      return WorkerFailure.of("SEARCH_CALL_REFUSED", "function", function, "table", table, "why", why)
          .raise();
    }
  }

  /** The value of a constant, as the worker reads it. */
  static String json(Expression value) {
    return json(CatalystTypeConverters.convertToScala(value.eval(null), value.dataType()));
  }

  static String json(Object value) {
    return Messages.print(Messages.value(inJava(value)));
  }

  private static Object inJava(Object value) {
    return value instanceof scala.collection.Seq<?> values
        ? items(values).stream().map(SearchFunctions::inJava).toList()
        : value;
  }
}
