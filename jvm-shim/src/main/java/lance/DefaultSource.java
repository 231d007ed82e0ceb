package lance;

import dev.pennon.spark.PennonSource;

/**
 * {@code format("lance")}, as SHOW CREATE TABLE says it.
 *
 * <p>Spark looks for a class of this name where no source has registered the short name: another
 * connector that has keeps it.
 */
public final class DefaultSource extends PennonSource {}
