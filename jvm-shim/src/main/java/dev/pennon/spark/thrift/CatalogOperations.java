package dev.pennon.spark.thrift;

import java.util.List;
import org.apache.hive.service.cli.HiveSQLException;
import org.apache.hive.service.cli.OperationState;
import org.apache.hive.service.cli.RowSet;
import org.apache.hive.service.cli.operation.GetCatalogsOperation;
import org.apache.hive.service.cli.operation.GetColumnsOperation;
import org.apache.hive.service.cli.operation.GetSchemasOperation;
import org.apache.hive.service.cli.operation.GetTablesOperation;
import org.apache.hive.service.cli.operation.MetadataOperation;
import org.apache.hive.service.cli.operation.Operation;
import org.apache.hive.service.cli.session.HiveSession;
import org.apache.spark.sql.AnalysisException;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.hive.thriftserver.server.SparkSQLOperationManager;

/**
 * What JDBC asks beside SQL, answered from the catalog that it names, or else from the session's.
 *
 * <p>For spark_catalog Spark's own operations answer, as before.
 */
final class CatalogOperations extends SparkSQLOperationManager {

  @Override
  public synchronized GetCatalogsOperation newGetCatalogsOperation(HiveSession parent) {
    SparkSession session = session(parent);
    return added(
        new GetCatalogsOperation(parent) {
          @Override
          public void runInternal() throws HiveSQLException {
            setState(OperationState.RUNNING);
            add(rowSet, () -> CatalogListing.catalogs(session));
            setState(OperationState.FINISHED);
          }
        });
  }

  @Override
  public synchronized GetSchemasOperation newGetSchemasOperation(
      HiveSession parent, String catalog, String schema) {
    CatalogListing listing = CatalogListing.of(session(parent), catalog);
    if (listing == null) {
      return super.newGetSchemasOperation(parent, catalog, schema);
    }
    return added(
        new GetSchemasOperation(parent, catalog, schema) {
          @Override
          public void runInternal() throws HiveSQLException {
            setState(OperationState.RUNNING);
            String schemas = convertIdentifierPattern(given(schema), false);
            add(rowSet, () -> listing.schemas(schemas));
            setState(OperationState.FINISHED);
          }
        });
  }

  @Override
  public synchronized MetadataOperation newGetTablesOperation(
      HiveSession parent, String catalog, String schema, String table, List<String> types) {
    CatalogListing listing = CatalogListing.of(session(parent), catalog);
    if (listing == null) {
      return super.newGetTablesOperation(parent, catalog, schema, table, types);
    }
    return added(
        new GetTablesOperation(parent, catalog, schema, table, types) {
          @Override
          public void runInternal() throws HiveSQLException {
            setState(OperationState.RUNNING);
            if (types == null || types.isEmpty() || types.contains(CatalogListing.TABLE)) {
              String schemas = convertIdentifierPattern(given(schema), false);
              String tables = convertIdentifierPattern(given(table), false);
              add(rowSet, () -> listing.tables(schemas, tables));
            }
            setState(OperationState.FINISHED);
          }
        });
  }

  @Override
  public synchronized GetColumnsOperation newGetColumnsOperation(
      HiveSession parent, String catalog, String schema, String table, String column) {
    CatalogListing listing = CatalogListing.of(session(parent), catalog);
    if (listing == null) {
      return super.newGetColumnsOperation(parent, catalog, schema, table, column);
    }
    return added(
        new GetColumnsOperation(parent, catalog, schema, table, column) {
          @Override
          public void runInternal() throws HiveSQLException {
            setState(OperationState.RUNNING);
            String tables = convertIdentifierPattern(given(table), false);
            String columns = convertIdentifierPattern(given(column), false);
            String schemas = convertIdentifierPattern(given(schema), false);
            add(rowSet, () -> listing.columns(schemas, tables, columns));
            setState(OperationState.FINISHED);
          }
        });
  }

  private static String given(String pattern) {
    return pattern == null || pattern.isEmpty() ? "%" : pattern;
  }

  /** The rows of one answer. */
  private interface Rows {
    List<Object[]> all() throws AnalysisException;
  }

  private static void add(RowSet rows, Rows asked) throws HiveSQLException {
    try {
      asked.all().forEach(rows::addRow);
    } catch (AnalysisException e) {
      throw new HiveSQLException(e);
    }
  }

  private <T extends Operation> T added(T operation) {
    handleToOperation().put(operation.getHandle(), operation);
    return operation;
  }

  private SparkSession session(HiveSession parent) {
    SparkSession session = sessionToContexts().get(parent.getSessionHandle());
    SparkSession.setActiveSession(session);
    return session;
  }
}
