package tests;

import java.nio.file.Files;
import java.nio.file.Path;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.SparkSession;

/** A job in Java: runs statements and writes the only row of the last one to a file, as JSON. */
public final class StatementsJob {
  private StatementsJob() {}

  public static void main(String[] arguments) throws Exception {
    SparkSession session = SparkSession.builder().appName("statements").getOrCreate();
    Dataset<Row> last = null;
    for (int at = 1; at < arguments.length; at++) {
      last = session.sql(arguments[at]);
    }
    Path written = Path.of(arguments[0] + ".part");
    Files.writeString(written, last.toJSON().first());
    Files.move(written, Path.of(arguments[0]));
    session.stop();
  }
}
