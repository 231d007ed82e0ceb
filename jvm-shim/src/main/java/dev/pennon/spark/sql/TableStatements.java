package dev.pennon.spark.sql;

import dev.pennon.spark.sql.SqlTokens.Kind;
import dev.pennon.spark.sql.SqlTokens.Token;
import java.util.List;
import java.util.Optional;
import java.util.function.Function;

/**
 * Statements that Spark's grammar lacks, put into its words: {@code ALTER TABLE … ADD | DROP |
 * REPLACE PARTITION FIELD …} and {@code … WRITE …} become {@code ALTER TABLE … SET TBLPROPERTIES}
 * of one property, whose value is the text after the table's name; {@code SHOW PARTITIONS} becomes
 * a query of the metadata table.
 *
 * <p>So Spark resolves the table, refreshes what it has cached of it, and takes the statement in
 * scripts and in EXECUTE IMMEDIATE. What the text means is the worker's to say.
 */
final class TableStatements {
  /** The property whose value is a statement; its Python twin is catalog/ddl/table_statement.py. */
  static final String PROPERTY = "pennon.statement";

  private TableStatements() {}

  /**
   * The SQL with these statements in Spark's words; the same object where there is none.
   *
   * @param ours the full name of the table of that name, as it was written, if it is one of Pennon's
   */
  static String inWordsOfSpark(String sql, Function<String, Optional<String>> ours) {
    List<Token> tokens = SqlTokens.of(sql);
    StringBuilder rewritten = new StringBuilder();
    int copied = 0;
    for (int start = 0; start + 2 < tokens.size(); start++) {
      boolean isShow = areWords(tokens, start, "SHOW", "PARTITIONS");
      int end = isShow || areWords(tokens, start, "ALTER", "TABLE")
          ? SqlTokens.endOfName(tokens, start + 2)
          : -1;
      if (end < 0 || !(isShow || isKnown(tokens, end))) {
        continue;
      }
      int last = endOfStatement(tokens, end);
      List<Token> rest = tokens.subList(end, last);
      Optional<String> table = ours.apply(SqlTokens.text(tokens.subList(start + 2, end)));
      if (table.isPresent()) {
        int from = isShow ? tokens.get(start).start() : tokens.get(end).start();
        rewritten.append(sql, copied, from);
        rewritten.append(isShow ? partitions(table.get(), rest) : asProperty(SqlTokens.text(rest)));
        copied = tokens.get(last - 1).end();
      }
      start = last - 1;
    }
    return copied == 0 ? sql : rewritten.append(sql.substring(copied)).toString();
  }

  /** The clause that stands for a statement's text. */
  static String asProperty(String text) {
    // The characters that a string literal could read otherwise, as in a URL.
    String encoded = text.replace("%", "%25").replace("'", "%27").replace("\\", "%5C");
    return "SET TBLPROPERTIES ('" + PROPERTY + "' = '" + encoded + "')";
  }

  /**
   * {@code SHOW PARTITIONS table [PARTITION (field = value, …)]} as a query of the metadata table.
   *
   * @param spec the tokens behind the table's name
   */
  private static String partitions(String table, List<Token> spec) {
    String query = "SELECT name AS partition FROM " + table + ".partitions WHERE name IS NOT NULL";
    StringBuilder where = new StringBuilder();
    int depth = 0;
    boolean isField = false;
    for (Token token : spec.isEmpty() ? spec : spec.subList(1, spec.size())) {
      depth += token.isSymbol('(') ? 1 : 0;
      boolean isNext = depth == 1 && (token.isSymbol(',') || (token.isSymbol('(') && !isField));
      if (isNext) {
        where.append(" AND partition.");
        isField = true;
      } else if (depth == 1 && isField && token.isSymbol('=')) {
        where.append(" <=> ");
        isField = false;
      } else if (depth > 1 || !token.isSymbol(')')) {
        where.append(token.text()).append(' ');
      }
      depth -= token.isSymbol(')') ? 1 : 0;
    }
    return query + where + " ORDER BY name";
  }

  private static boolean areWords(List<Token> tokens, int start, String... words) {
    for (int index = 0; index < words.length; index++) {
      if (!tokens.get(start + index).isWord(words[index])) {
        return false;
      }
    }
    return true;
  }

  private static boolean isKnown(List<Token> tokens, int at) {
    if (at >= tokens.size()) {
      return false;
    }
    Token action = tokens.get(at);
    boolean ofFields =
        action.isWord("ADD") || action.isWord("DROP") || action.isWord("REPLACE");
    return action.isWord("WRITE")
        || (ofFields
            && at + 2 < tokens.size()
            && tokens.get(at + 1).isWord("PARTITION")
            && tokens.get(at + 2).isWord("FIELD"));
  }

  private static int endOfStatement(List<Token> tokens, int start) {
    int end = start;
    while (end < tokens.size()
        && !(tokens.get(end).kind() == Kind.SYMBOL && tokens.get(end).isSymbol(';'))) {
      end++;
    }
    return end;
  }
}
