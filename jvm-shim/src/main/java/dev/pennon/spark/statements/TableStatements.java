package dev.pennon.spark.statements;

import dev.pennon.spark.statements.SqlTokens.Token;
import java.util.List;
import java.util.Locale;
import java.util.Optional;
import java.util.function.Function;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Collectors;

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

  /** More words than any of these patterns has; each matches whole words, with a space behind. */
  private static final int MOST_WORDS = 8;

  private static final Pattern BEFORE_TABLE = Pattern.compile("(SHOW PARTITIONS|ALTER TABLE) ");

  /** What stands behind the name of an altered table in a statement that Spark's grammar lacks. */
  private static final Pattern BEHIND_TABLE =
      Pattern.compile(
          "((ADD|DROP|REPLACE) ((IF|NOT|EXISTS) )*PARTITION"
              + "|(CREATE|CREATE OR REPLACE|REPLACE|DROP) (TAG|BRANCH)"
              + "|(CREATE|DROP|REFRESH) INDEX|(SET|DROP) IDENTIFIER FIELDS|WRITE|RECOVER|CLUSTER|PARTITION) ");

  /** What stands before the table's name in a statement that only the worker answers. */
  private static final Pattern ANSWERED =
      Pattern.compile(
          "(VACUUM|OPTIMIZE|RESTORE TABLE|RESTORE|(DESCRIBE|DESC) HISTORY|DESCRIBE DETAIL"
              + "|(MSCK|FSCK) REPAIR TABLE|(REORG|ANALYZE) TABLE"
              + "|CREATE (OR REPLACE )?VIEW( IF NOT EXISTS)?) ");

  /** What stands before the table's name in one that only the worker answers of a PARTITION. */
  private static final Pattern OF_PARTITION =
      Pattern.compile("(TRUNCATE TABLE|(DESCRIBE|DESC)( TABLE)?( EXTENDED| FORMATTED)?) ");

  /** What stands before the name of a new table, which may be a clone. */
  private static final Pattern MAKING =
      Pattern.compile("(CREATE TABLE IF NOT EXISTS|(CREATE|CREATE OR REPLACE|REPLACE) TABLE) ");

  private static final Pattern CLONE = Pattern.compile("(SHALLOW|DEEP) CLONE ");

  /** What stands before the name of an index, whose table follows ON. */
  private static final Pattern INDEX =
      Pattern.compile("(CREATE|DROP) INDEX (IF (NOT )?EXISTS )?");

  private static final Pattern SHOW_INDEXES = Pattern.compile("SHOW INDEXES (ON|IN|FROM) ");

  private static final Pattern LITERAL = Pattern.compile("\\.?['\"0-9]|(?i)(NULL|TRUE|FALSE)$");

  /** A field and its value, as {@link #shape}: a literal, a parameter, or a call of these. */
  private static final Pattern FIELD =
      Pattern.compile("[nP]=([-+]?n?l+|:n|\\?|n\\([nl,-]*(\\([nl,-]*\\)[nl,-]*)*\\))");

  /** What may stand behind the table of SHOW PARTITIONS. */
  private static final Pattern SHOWN = Pattern.compile("(P\\(" + FIELD + "(," + FIELD + ")*\\))?");

  private TableStatements() {}

  /**
   * The SQL with these statements in Spark's words; the same object where there is none.
   *
   * @param ours the full name of the table of that name, as it was written, if it is one of Pennon's
   */
  static String inWordsOfSpark(String sql, Function<String, Optional<String>> ours) {
    List<Token> tokens = SqlTokens.of(sql);
    Optional<String> answered =
        answered(tokens, ours).or(() -> cloned(tokens, ours)).or(() -> indexed(tokens, ours));
    if (answered.isPresent()) {
      return answered.get();
    }
    StringBuilder rewritten = new StringBuilder();
    int copied = 0;
    for (int start = 0; start + 2 < tokens.size(); start++) {
      boolean isShow = tokens.get(start).is("SHOW");
      boolean isNamed = isShow || tokens.get(start).is("ALTER");
      int words = isNamed ? wordsOf(BEFORE_TABLE, tokens, start) : 0;
      int end = words > 0 ? SqlTokens.endOfName(tokens, start + words) : -1;
      if (end < 0 || !(isShow || wordsOf(BEHIND_TABLE, tokens, end) > 0)) {
        continue;
      }
      int last = endOfStatement(tokens, end);
      List<Token> rest = tokens.subList(end, last);
      Optional<String> table = ours.apply(SqlTokens.text(tokens.subList(start + 2, end)));
      if (table.isPresent() && (!isShow || SHOWN.matcher(shape(rest)).matches())) {
        rewritten.append(sql, copied, tokens.get(isShow ? start : end).start());
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
    int words = wordsOf(ANSWERED, tokens, 0);
    int start = words > 0 ? words : wordsOf(OF_PARTITION, tokens, 0);
    int end = start > 0 ? SqlTokens.endOfName(tokens, start) : -1;
    if (end < 0 || (words == 0 && !(end < tokens.size() && tokens.get(end).is("PARTITION")))) {
      return Optional.empty();
    }
    String name = SqlTokens.text(tokens.subList(start, end));
    String text = asProperty(SqlTokens.text(tokens.subList(0, start)));
    boolean isView = tokens.get(0).is("CREATE");
    return ours.apply(name)
        .map(table -> isView ? making(name, text) : "ALTER TABLE " + name + " " + text);
  }

  /** {@code CREATE INDEX i ON t …} and its like as changes of the table; what SHOW shows is one. */
  private static Optional<String> indexed(
      List<Token> tokens, Function<String, Optional<String>> ours) {
    int shown = wordsOf(SHOW_INDEXES, tokens, 0);
    int on = shown > 0 ? shown - 1 : wordsOf(INDEX, tokens, 0) + 1;
    if (on < 2 || on + 1 >= tokens.size() || (shown == 0 && !tokens.get(on).is("ON"))) {
      return Optional.empty();
    }
    int start = tokens.get(on + 1).is("TABLE") ? on + 2 : on + 1;
    int end = SqlTokens.endOfName(tokens, start);
    if (end < 0) {
      return Optional.empty();
    }
    String name = SqlTokens.text(tokens.subList(start, end));
    List<Token> behind = tokens.subList(end, endOfStatement(tokens, end));
    String rest = behind.isEmpty() ? "" : " " + SqlTokens.text(behind);
    return ours.apply(name)
        .map(
            table ->
                shown > 0
                    ? "SELECT * FROM " + table + ".indexes" + rest
                    : "ALTER TABLE " + name + " "
                        + asProperty(SqlTokens.text(tokens.subList(0, on)) + rest));
  }

  /** {@code CREATE TABLE a SHALLOW CLONE b}, of Delta's, for a table of Pennon. */
  private static Optional<String> cloned(
      List<Token> tokens, Function<String, Optional<String>> ours) {
    int start = wordsOf(MAKING, tokens, 0);
    int end = start > 0 ? SqlTokens.endOfName(tokens, start) : -1;
    int words = end > 0 ? wordsOf(CLONE, tokens, end) : 0;
    if (words == 0) {
      return Optional.empty();
    }
    String name = SqlTokens.text(tokens.subList(start, end));
    String text = asProperty(SqlTokens.text(tokens.subList(end, end + words)));
    return ours.apply(name).map(table -> making(name, text));
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
    for (Matcher field = FIELD.matcher(shape(spec)); field.find(); ) {
      query += " AND partition." + spec.get(field.start()).text() + " <=> "
          + SqlTokens.text(spec.subList(field.start() + 2, field.end()));
    }
    return query + " ORDER BY name";
  }

  /** A letter for each token: l of a literal, P or n of a word or a name, or what it is. */
  private static String shape(List<Token> tokens) {
    return tokens.stream()
        .map(token -> LITERAL.matcher(token.text()).lookingAt() ? "l"
            : token.is("PARTITION") ? "P" : token.isNamePart() ? "n"
            : token.is("==") ? "=" : token.text().length() == 1 ? token.text() : "!")
        .collect(Collectors.joining());
  }

  /** How many tokens at a place are the words of a pattern; 0 where they are others. */
  private static int wordsOf(Pattern pattern, List<Token> tokens, int at) {
    String words =
        tokens.stream()
            .skip(at)
            .limit(MOST_WORDS)
            .map(token -> token.text().toUpperCase(Locale.ROOT) + " ")
            .collect(Collectors.joining());
    Matcher matcher = pattern.matcher(words);
    return matcher.lookingAt() ? (int) matcher.group().chars().filter(c -> c == ' ').count() : 0;
  }

  private static int endOfStatement(List<Token> tokens, int start) {
    int end = start;
    while (end < tokens.size() && !tokens.get(end).is(";")) {
      end++;
    }
    return end;
  }
}
