package dev.pennon.spark.thrift;

import java.lang.reflect.Field;
import java.util.concurrent.CountDownLatch;
import org.apache.hive.service.Service;
import org.apache.hive.service.cli.CLIService;
import org.apache.hive.service.cli.operation.OperationManager;
import org.apache.hive.service.cli.session.SessionManager;
import org.apache.hive.service.server.HiveServer2;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.hive.thriftserver.HiveThriftServer2;
import org.apache.spark.sql.hive.thriftserver.server.SparkSQLOperationManager;

/**
 * Spark's Thrift server, which tells JDBC the schemas, tables and columns of the session's catalog.
 * Spark's own tells those of spark_catalog alone.
 */
public final class ThriftServer {
  private ThriftServer() {}

  /** Stays until the server ends: on Kubernetes Spark stops the context of a main that is over. */
  public static void main(String[] none) throws ReflectiveOperationException, InterruptedException {
    SparkSession session = SparkSession.builder().enableHiveSupport().getOrCreate();
    HiveServer2 server = started(session);
    SessionManager sessions =
        server.getServices().stream()
            .filter(CLIService.class::isInstance)
            .map(service -> ((CLIService) service).getSessionManager())
            .findFirst()
            .orElseThrow();
    CatalogOperations operations = new CatalogOperations();
    // Spark's class looks for the map in the class above its own, and there that is itself.
    Object running = field(OperationManager.class, "handleToOperation").get(operations);
    set(operations, SparkSQLOperationManager.class, "handleToOperation", running);
    // Spark's class keeps its sessions in the first, and hands them the second.
    set(sessions, sessions.getClass(), "sparkSqlOperationManager", operations);
    set(sessions, SessionManager.class, "operationManager", operations);
    CountDownLatch hasEnded = new CountDownLatch(1);
    server.register(service -> hasEnded.countDown());
    if (server.getServiceState() == Service.STATE.STARTED) {
      hasEnded.await();
    }
  }

  /** By the method that every Spark has. */
  @SuppressWarnings("deprecation")
  private static HiveServer2 started(SparkSession session) {
    return HiveThriftServer2.startWithContext(session.sqlContext());
  }

  private static void set(Object owner, Class<?> type, String name, Object value)
      throws ReflectiveOperationException {
    field(type, name).set(owner, value);
  }

  private static Field field(Class<?> type, String name) throws ReflectiveOperationException {
    Field field = type.getDeclaredField(name);
    field.setAccessible(true);
    return field;
  }
}
