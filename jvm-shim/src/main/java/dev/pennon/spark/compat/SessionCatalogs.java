package dev.pennon.spark.compat;

import java.lang.reflect.InvocationTargetException;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.connector.catalog.CatalogManager;
import org.apache.spark.sql.connector.catalog.CatalogPlugin;

/**
 * The catalogs of a session.
 *
 * <p>Spark's manager of them is a class in 4.1 and an interface later, and a compiled call knows
 * which of the two it is for: these calls are looked up when they are made.
 */
public final class SessionCatalogs {
  private final CatalogManager manager;

  private SessionCatalogs(CatalogManager manager) {
    this.manager = manager;
  }

  public static SessionCatalogs of(SparkSession session) {
    return new SessionCatalogs(
        ((org.apache.spark.sql.classic.SparkSession) session).sessionState().catalogManager());
  }

  public boolean has(String name) {
    return (Boolean) ask("isCatalogRegistered", name);
  }

  public CatalogPlugin get(String name) {
    return (CatalogPlugin) ask("catalog", name);
  }

  public CatalogPlugin current() {
    return (CatalogPlugin) ask("currentCatalog");
  }

  public String[] currentNamespace() {
    return (String[]) ask("currentNamespace");
  }

  private Object ask(String method, String... names) {
    Class<?>[] types = names.length == 0 ? new Class<?>[0] : new Class<?>[] {String.class};
    try {
      return CatalogManager.class.getMethod(method, types).invoke(manager, (Object[]) names);
    } catch (InvocationTargetException e) {
      if (e.getCause() instanceof RuntimeException cause) {
        throw cause;
      }
      throw new IllegalStateException(e.getCause());
    } catch (NoSuchMethodException | IllegalAccessException e) {
      throw new IllegalStateException(e);
    }
  }
}
