package dev.pennon.spark.statements;

import dev.pennon.spark.statements.SqlTokens.Kind;
import dev.pennon.spark.statements.SqlTokens.Token;
import java.util.List;
import java.util.Locale;
import java.util.Optional;
import java.util.Set;
import java.util.function.Function;

/**
 * Statements that Spark's grammar lacks, put into its words: {@code ALTER TABLE … ADD | DROP |
 * REPLACE PARTITION FIELD …}, {@code … CREATE | REPLACE | DROP TAG …} and {@code … WRITE …} become
 * {@code ALTER TABLE … SET TBLPROPERTIES} of one property, whose value is the text after the table's
 * name; {@code SHOW PARTITIONS} becomes a query of the metadata table. So do statements of Spark and
 * of other table formats that mean nothing for a table of Pennon: the worker tells what to type
 * instead.
 *
 * <p>So Spark resolves the table, refreshes what it has cached of it, and takes the statement in
 * scripts and in EXECUTE IMMEDIATE. What the text means is the worker's to say.
 */
final class TableStatements {
  /** The property whose value is a statement; its Python twin is catalog/ddl/table_statement.py. */
  static final String PROPERTY = "pennon.statement";

  /** What may stand behind it, besides ADD, DROP and REPLACE of partitions and their fields. */
  private static final Set<String> ACTIONS = Set.of("WRITE", "RECOVER", "CLUSTER", "PARTITION");

  private static final Set<String> CONDITIONS = Set.of("IF", "NOT", "EXISTS");

  /** What stands before the table's name in a statement that only the worker answers. */
  private static final List<List<String>> ANSWERED =
      List.of(
          List.of("VACUUM"),
          List.of("OPTIMIZE"),
          List.of("RESTORE", "TABLE"),
          List.of("RESTORE"),
          List.of("DESCRIBE", "HISTORY"),
          List.of("DESC", "HISTORY"),
          List.of("DESCRIBE", "DETAIL"),
          List.of("MSCK", "REPAIR", "TABLE"),
          List.of("FSCK", "REPAIR", "TABLE"),
          List.of("REORG", "TABLE"),
          List.of("ANALYZE", "TABLE"),
          List.of("TRUNCATE", "TABLE"),
          List.of("CREATE", "VIEW", "IF", "NOT", "EXISTS"),
          List.of("CREATE", "VIEW"),
          List.of("CREATE", "OR", "REPLACE", "VIEW"));

  /** What stands before the name of a new table, which may be a clone. */
  private static final List<List<String>> MAKING =
      List.of(
          List.of("CREATE", "TABLE", "IF", "NOT", "EXISTS"),
          List.of("CREATE", "TABLE"),
          List.of("CREATE", "OR", "REPLACE", "TABLE"),
          List.of("REPLACE", "TABLE"));

  private TableStatements() {}

  /**
   * The SQL with these statements in Spark's words; the same object where there is none.
   *
   * @param ours the full name of the table of that name, as it was written, if it is one of Pennon's
   */
  static String inWordsOfSpark(String sql, Function<String, Optional<String>> ours) {
    List<Token> tokens = SqlTokens.of(sql);
    Optional<String> answered = answered(tokens, ours).or(() -> cloned(tokens, ours));
    if (answered.isPresent()) {
      return answered.get();
    }
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

  /** A whole statement as a clause of one that Spark reads; empty where it has to be another. */
  private static Optional<String> answered(
      List<Token> tokens, Function<String, Optional<String>> ours) {
    for (List<String> words : ANSWERED) {
      int start = words.size();
      int end =
          start < tokens.size() && areWords(tokens, 0, words.toArray(String[]::new))
              ? SqlTokens.endOfName(tokens, start)
              : -1;
      boolean isPlain = end == tokens.size() || (end > 0 && tokens.get(end).isSymbol(';'));
      if (end < 0 || (words.get(0).equals("TRUNCATE") && isPlain)) {
        continue;
      }
      String name = SqlTokens.text(tokens.subList(start, end));
      String text = asProperty(SqlTokens.text(tokens.subList(0, start)));
      boolean isView = words.get(0).equals("CREATE");
      return ours.apply(name)
          .map(table -> isView ? making(name, text) : "ALTER TABLE " + name + " " + text);
    }
    return Optional.empty();
  }

  /** {@code CREATE TABLE a SHALLOW CLONE b}, of Delta's, for a table of Pennon. */
  private static Optional<String> cloned(
      List<Token> tokens, Function<String, Optional<String>> ours) {
    for (List<String> words : MAKING) {
      int start = words.size();
      if (start >= tokens.size() || !areWords(tokens, 0, words.toArray(String[]::new))) {
        continue;
      }
      int end = SqlTokens.endOfName(tokens, start);
      if (end > 0
          && (areWords(tokens, end, "SHALLOW", "CLONE") || areWords(tokens, end, "DEEP", "CLONE"))) {
        String name = SqlTokens.text(tokens.subList(start, end));
        String text = asProperty(SqlTokens.text(tokens.subList(end, end + 2)));
        return ours.apply(name).map(table -> making(name, text));
      }
    }
    return Optional.empty();
  }

  /** A statement about an object that is to be made, whose meaning stands in a property. */
  private static String making(String name, String property) {
    return "CREATE TABLE " + name + " (column INT) " + property.substring("SET ".length());
  }

  /** The clause that stands for a statement's text. */
  static String asProperty(String text) {
    // The characters that a string literal could read otherwise, as in a URL; spaces, because
    // Iceberg's parser takes any ALTER TABLE for its own that has "add partition field" within.
    String encoded =
        text.replace("%", "%25").replace("'", "%27").replace("\\", "%5C").replace(" ", "%20");
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
    int end = -1;
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
        // A number is three tokens without a gap: 1.5.
        where.append(token.start() > end ? " " : "").append(token.text());
      }
      end = token.end();
      depth -= token.isSymbol(')') ? 1 : 0;
    }
    return query + where + " ORDER BY name";
  }

  private static boolean areWords(List<Token> tokens, int start, String... words) {
    if (start + words.length > tokens.size()) {
      return false;
    }
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
    int object = at + (areWords(tokens, at, "CREATE", "OR", "REPLACE") ? 3 : 1);
    if (areWords(tokens, object, "TAG") || areWords(tokens, object, "BRANCH")) {
      return action.isWord("CREATE") || action.isWord("REPLACE") || action.isWord("DROP");
    }
    if (areWords(tokens, at + 1, "IDENTIFIER", "FIELDS")) {
      return action.isWord("SET") || action.isWord("DROP");
    }
    if (action.isWord("ADD") || action.isWord("DROP") || action.isWord("REPLACE")) {
      int next = at + 1;
      while (next < tokens.size() && CONDITIONS.contains(tokens.get(next).text().toUpperCase(Locale.ROOT))) {
        next++;
      }
      return next < tokens.size() && tokens.get(next).isWord("PARTITION");
    }
    return ACTIONS.contains(action.text().toUpperCase(Locale.ROOT));
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
