package tests;

import java.lang.reflect.InvocationHandler;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Proxy;
import java.util.Locale;
import org.apache.spark.sql.SparkSessionExtensions;
import org.apache.spark.sql.catalyst.parser.ParserInterface;
import scala.Function1;
import scala.runtime.BoxedUnit;

/**
 * Another connector's extension: its parser answers the statements about partition fields and write
 * orders of its catalog, {@code other}, by showing what it was given.
 */
public final class OtherExtension implements Function1<SparkSessionExtensions, BoxedUnit> {
  @Override
  public BoxedUnit apply(SparkSessionExtensions extensions) {
    extensions.injectParser((session, delegate) -> listening(delegate));
    return BoxedUnit.UNIT;
  }

  private static ParserInterface listening(ParserInterface delegate) {
    InvocationHandler handler =
        (proxy, method, arguments) -> {
          boolean isStatement =
              method.getName().startsWith("parsePlan")
                  && arguments[0].toString().contains("ALTER TABLE other.");
          if (method.getName().startsWith("parsePlan")
              && arguments[0].toString().toLowerCase(Locale.ROOT).contains("pennon.statement' = 'add partition field")) {
            throw new IllegalStateException("the statement is taken for one of another catalog");
          }
          if (isStatement) {
            arguments[0] = "SELECT \"" + arguments[0] + "\" AS other_parser";
          }
          try {
            return method.invoke(delegate, arguments);
          } catch (InvocationTargetException e) {
            throw e.getCause();
          }
        };
    ClassLoader loader = OtherExtension.class.getClassLoader();
    return (ParserInterface) Proxy.newProxyInstance(loader, new Class<?>[] {ParserInterface.class}, handler);
  }
}
