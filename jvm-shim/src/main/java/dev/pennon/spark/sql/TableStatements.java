package dev.pennon.spark.sql;

import dev.pennon.spark.sql.SqlTokens.Kind;
import dev.pennon.spark.sql.SqlTokens.Token;
import java.util.List;
import java.util.function.Predicate;

/**
 * Statements that Spark's grammar lacks, put into its words: {@code ALTER TABLE … ADD | DROP |
 * REPLACE PARTITION FIELD …} and {@code … WRITE …} become {@code ALTER TABLE … SET TBLPROPERTIES}
 * of one property, whose value is the text after the table's name.
 *
 * <p>So Spark resolves the table, refreshes what it has cached of it, and takes the statement in
 * scripts and in EXECUTE IMMEDIATE. What the text means is the worker's to say.
 */
final class TableStatements {
  /** The property whose value is a statement; its Python twin is catalog/table_statement.py. */
  static final String PROPERTY = "pennon.statement";

  private TableStatements() {}

  /**
   * The SQL with these statements in Spark's words; the same object where there is none.
   *
   * @param isOurs whether the table of that name, as it was written, is one of Pennon's
   */
  static String inWordsOfSpark(String sql, Predicate<String> isOurs) {
    List<Token> tokens = SqlTokens.of(sql);
    StringBuilder rewritten = new StringBuilder();
    int copied = 0;
    for (int start = 0; start + 3 < tokens.size(); start++) {
      int end = endOfTable(tokens, start);
      if (end < 0 || !isKnown(tokens, end)) {
        continue;
      }
      int last = endOfStatement(tokens, end);
      if (isOurs.test(SqlTokens.text(tokens.subList(start + 2, end)))) {
        String text = SqlTokens.text(tokens.subList(end, last));
        rewritten.append(sql, copied, tokens.get(end).start()).append(asProperty(text));
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

  /** Index after the name in {@code ALTER TABLE name}, or -1. */
  private static int endOfTable(List<Token> tokens, int start) {
    boolean isAlter = tokens.get(start).isWord("ALTER") && tokens.get(start + 1).isWord("TABLE");
    int end = isAlter ? SqlTokens.endOfName(tokens, start + 2) : -1;
    return end < tokens.size() ? end : -1;
  }

  private static boolean isKnown(List<Token> tokens, int at) {
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
