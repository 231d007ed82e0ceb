package dev.pennon.spark.write;

import com.fasterxml.jackson.databind.node.ArrayNode;
import dev.pennon.spark.failures.WorkerFailure;
import dev.pennon.spark.replies.TableHandle;

/** The table of a statement that changes rows, pinned to the snapshot that the statement starts from. */
public interface ChangedTable {
  TableHandle handle();

  /** The predicates of each scan of it: another commit of such rows changes what is written. */
  ArrayNode reads();

  /** Has Spark read anew what it keeps of the table. */
  void renewKept();

  /**
   * Runs the statement again whose commit was refused, where that can help.
   *
   * @param refusal why the commit was refused; thrown where the statement is not run again
   * @param clear removes what the refused commit would have made visible
   */
  void repeatStatement(WorkerFailure refusal, Runnable clear);
}
