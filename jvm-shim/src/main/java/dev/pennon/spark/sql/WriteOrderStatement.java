package dev.pennon.spark.sql;

import dev.pennon.spark.catalog.WriteOrderChange;
import dev.pennon.spark.sql.SqlTokens.Token;
import dev.pennon.spark.worker.WorkerFailure;
import java.util.List;
import java.util.Map;
import java.util.Optional;

/**
 * {@code ALTER TABLE … WRITE [DISTRIBUTED BY PARTITION] [LOCALLY] ORDERED BY … | UNORDERED}.
 *
 * <p>Every write is distributed by partition and ordered file by file: the words that ask for it
 * change nothing. What the order may be is the worker's to say.
 *
 * @param table the table's name as it was written
 * @param order the text after ORDERED BY; null for UNORDERED
 */
record WriteOrderStatement(String table, String order) {
  /** Recognises the statement by its tokens; empty when the text is another statement. */
  static Optional<WriteOrderStatement> recognise(String sql) {
    List<Token> tokens = SqlTokens.ofStatement(sql);
    if (!startsWith(tokens, "ALTER", "TABLE")) {
      return Optional.empty();
    }
    int end = SqlTokens.endOfName(tokens, 2);
    if (end < 0 || !startsWith(tokens.subList(end, tokens.size()), "WRITE")) {
      return Optional.empty();
    }
    String table = SqlTokens.text(tokens.subList(2, end));
    List<Token> spec = tokens.subList(end + 1, tokens.size());
    List<Token> rest = without(spec, "DISTRIBUTED", "BY", "PARTITION");
    if (startsWith(rest, "UNORDERED") && rest.size() == 1) {
      return Optional.of(new WriteOrderStatement(table, null));
    }
    List<Token> ordered = without(rest, "LOCALLY");
    if (!startsWith(ordered, "ORDERED", "BY") || ordered.size() == 2) {
      throw syntaxError(table, SqlTokens.text(spec)).raise();
    }
    String order = SqlTokens.text(ordered.subList(2, ordered.size()));
    return Optional.of(new WriteOrderStatement(table, order));
  }

  WriteOrderChange change() {
    return new WriteOrderChange(order);
  }

  private static List<Token> without(List<Token> tokens, String... words) {
    return startsWith(tokens, words) ? tokens.subList(words.length, tokens.size()) : tokens;
  }

  private static boolean startsWith(List<Token> tokens, String... words) {
    if (tokens.size() < words.length) {
      return false;
    }
    for (int index = 0; index < words.length; index++) {
      if (!tokens.get(index).isWord(words[index])) {
        return false;
      }
    }
    return true;
  }

  private static WorkerFailure syntaxError(String table, String text) {
    String message =
        "[WRITE_ORDER_SYNTAX] Cannot parse '"
            + text
            + "' in ALTER TABLE "
            + table
            + " WRITE: it is neither an order nor UNORDERED. Write ORDERED BY with columns, for"
            + " example ORDERED BY id, ts DESC NULLS LAST, or UNORDERED.";
    return new WorkerFailure(
        "WRITE_ORDER_SYNTAX", message, Map.of("table", table, "text", text), "42601", null);
  }
}
