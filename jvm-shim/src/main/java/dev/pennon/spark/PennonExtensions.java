package dev.pennon.spark;

import dev.pennon.spark.compat.ScanLinks;
import dev.pennon.spark.plan.DerivedKeyRule;
import dev.pennon.spark.plan.JoinPlanning;
import dev.pennon.spark.search.FirstRowsRule;
import dev.pennon.spark.search.NearestJoinRule;
import dev.pennon.spark.search.SearchFunctions;
import dev.pennon.spark.statements.AnalyzeTablesRule;
import dev.pennon.spark.statements.MissingPathRule;
import dev.pennon.spark.statements.MissingTableRule;
import dev.pennon.spark.statements.OneVersionRule;
import dev.pennon.spark.statements.PennonParser;
import dev.pennon.spark.statements.RowChangeMetadata;
import dev.pennon.spark.statements.ShownTablesRule;
import dev.pennon.spark.statements.StatementOwners;
import dev.pennon.spark.statements.TableChanges;
import dev.pennon.spark.worker.WorkerProcess;
import java.util.stream.Stream;
import org.apache.spark.SparkEnv;
import org.apache.spark.internal.config.ConfigBuilder;
import org.apache.spark.internal.config.ConfigEntry;
import org.apache.spark.sql.SparkSessionExtensions;
import scala.Function1;
import scala.runtime.BoxedUnit;

/** What Pennon adds to a session: {@code spark.sql.extensions = dev.pennon.spark.PennonExtensions}. */
public final class PennonExtensions implements Function1<SparkSessionExtensions, BoxedUnit> {
  static {
    // What Spark knows as a setting of the application it refuses to SET in a session.
    Stream.of("spark.pennon.worker.memory", "spark.pennon.worker.timeout")
        .filter(setting -> ConfigEntry.findEntry(setting) == null)
        .forEach(setting -> new ConfigBuilder(setting).stringConf().createOptional());
  }

  @Override
  public BoxedUnit apply(SparkSessionExtensions extensions) {
    extensions.injectParser(PennonParser::new);
    extensions.injectResolutionRule(session -> new StatementOwners());
    extensions.injectResolutionRule(session -> new RowChangeMetadata());
    extensions.injectHintResolutionRule(session -> new RowChangeMetadata());
    extensions.injectHintResolutionRule(session -> new MissingPathRule());
    extensions.injectHintResolutionRule(session -> new TableChanges());
    extensions.injectHintResolutionRule(session -> new ShownTablesRule());
    extensions.injectPostHocResolutionRule(MissingTableRule::new);
    extensions.injectPostHocResolutionRule(session -> new ShownTablesRule());
    extensions.injectPostHocResolutionRule(session -> new ForeignTableRule());
    extensions.injectPostHocResolutionRule(session -> new AnalyzeTablesRule());
    extensions.injectPostHocResolutionRule(session -> new NearestJoinRule());
    extensions.injectPlanNormalizationRule(session -> new OneVersionRule());
    extensions.injectPlanNormalizationRule(session -> new FirstRowsRule());
    extensions.injectOptimizerRule(DerivedKeyRule::installedIn);
    extensions.injectQueryStagePrepRule(session -> new ScanLinks());
    JoinPlanning.injectInto(extensions);
    SearchFunctions.injectInto(extensions);
    // While Spark goes on with the session, whose first query finds the worker ready.
    String catalog = PennonCatalog.class.getName();
    if (Stream.of(SparkEnv.get().conf().getAll()).anyMatch(entry -> entry._2().equals(catalog))) {
      WorkerProcess.startEarly();
    }
    return BoxedUnit.UNIT;
  }
}
