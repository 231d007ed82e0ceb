package dev.pennon.spark.sql;

import dev.pennon.spark.sql.SqlTokens.Token;
import dev.pennon.spark.worker.WorkerFailure;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Optional;
import java.util.function.Function;

/** What to type instead of a statement of another table format that no parser of the session reads. */
final class StatementAdvice {
  private static final Map<String, String> ADVICE =
      Map.of(
          "VACUUM",
          "CALL <catalog>.system.vacuum(table => '<table>') removes files that no version names, and"
              + " expire_snapshots removes old versions",
          "RESTORE", "CALL <catalog>.system.rollback(table => '<table>', version => 3)",
          "OPTIMIZE", "INSERT OVERWRITE rewrites the partitions that it fills");

  private StatementAdvice() {}

  /**
   * The failure to show in the place of a syntax error, for a table of Pennon.
   *
   * @param ours the full name of a table, if it is one of Pennon's
   */
  static Optional<WorkerFailure> of(String sql, Function<String, Optional<String>> ours) {
    List<Token> tokens = SqlTokens.of(sql);
    if (tokens.isEmpty()) {
      return Optional.empty();
    }
    String word = tokens.get(0).text().toUpperCase(Locale.ROOT);
    int start = tokens.size() > 1 && tokens.get(1).isWord("TABLE") ? 2 : 1;
    int end = ADVICE.containsKey(word) ? SqlTokens.endOfName(tokens, start) : -1;
    if (end < 0) {
      return Optional.empty();
    }
    return ours.apply(SqlTokens.text(tokens.subList(start, end))).map(table -> failure(word, table));
  }

  private static WorkerFailure failure(String word, String table) {
    return new WorkerFailure(
        "STATEMENT_NOT_SUPPORTED",
        "[STATEMENT_NOT_SUPPORTED] Cannot "
            + word
            + " "
            + table
            + ": it is no statement for tables of Pennon. Use instead: "
            + ADVICE.get(word)
            + ".",
        Map.of("statement", word, "table", table),
        "0A000",
        null);
  }
}
