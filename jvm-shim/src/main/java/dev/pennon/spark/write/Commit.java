package dev.pennon.spark.write;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import dev.pennon.spark.failures.WorkerFailure;
import dev.pennon.spark.worker.WorkerConnection;
import java.util.UUID;
import org.apache.spark.SparkContext;
import org.apache.spark.sql.SparkSession;

/**
 * One commit, however often it is sent: the worker makes it once.
 *
 * <p>A commit whose answer was lost with its worker is sent again, to a new one. The id tells the
 * new worker what the old one has done.
 */
public final class Commit {
  private static final int ATTEMPTS = 5;
  private static final int PAUSE_MILLISECONDS = 100;

  private final ChangedTable table;
  private final String id;
  private final String queryId;
  private final Long epoch;
  private boolean sent;

  public Commit(ChangedTable table, String queryId) {
    this(table, UUID.randomUUID().toString(), queryId, null);
  }

  private Commit(ChangedTable table, String id, String queryId, Long epoch) {
    this.table = table;
    this.id = id;
    this.queryId = queryId;
    this.epoch = epoch;
  }

  /** The commit of a micro batch, which is the same after a restart of its stream. */
  static Commit ofEpoch(ChangedTable table, String queryId, long epoch) {
    return new Commit(table, queryId + "-" + epoch, queryId, epoch);
  }

  /** Names this commit in a request. */
  public ObjectNode named(ObjectNode request) {
    SparkContext context = SparkSession.active().sparkContext();
    request
        .putObject("commit")
        .put("id", id)
        .put("query_id", queryId)
        .put("user", context.sparkUser())
        .put("application", context.applicationId())
        .put("epoch", epoch);
    return request;
  }

  /** Sends what makes the commit until an answer comes; an interrupt waits for that. */
  public JsonNode make(ObjectNode request) {
    sent = true;
    JsonNode made = WorkerConnection.uninterruptibly(() -> untilAnswered(request));
    table.renewKept();
    return made;
  }

  private JsonNode untilAnswered(ObjectNode request) throws InterruptedException {
    WorkerFailure lost = null;
    for (int attempt = 0; attempt < ATTEMPTS; attempt++) {
      // A killed process is seen as alive, and refuses connections, for a moment.
      Thread.sleep((long) attempt * attempt * PAUSE_MILLISECONDS);
      try {
        return WorkerConnection.exchange(request);
      } catch (WorkerFailure failure) {
        boolean isLost = failure.is("WORKER_LOST");
        if (!isLost && (lost == null || !failure.is("WORKER_NOT_STARTED"))) {
          throw failure;
        }
        lost = failure;
      }
    }
    String why = lost.getMessage();
    throw WorkerFailure.of(
            "COMMIT_OUTCOME_UNKNOWN", "commit", id, "table", table.handle().name(), "why", why)
        .causedBy(lost);
  }

  /** Sends what takes back the files of the commit; the worker keeps those that it has made. */
  public void abandon(ObjectNode request) {
    request.put("was_sent", sent);
    WorkerConnection.uninterruptibly(() -> WorkerConnection.exchange(request));
  }
}
