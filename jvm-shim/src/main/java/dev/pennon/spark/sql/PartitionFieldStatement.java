package dev.pennon.spark.sql;

import dev.pennon.spark.sql.SqlTokens.Kind;
import dev.pennon.spark.sql.SqlTokens.Token;
import dev.pennon.spark.worker.WorkerFailure;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Optional;

/**
 * {@code ALTER TABLE … ADD | DROP | REPLACE PARTITION FIELD …} in its parts, still as text.
 *
 * @param table the table's name as it was written
 * @param action {@code add}, {@code drop} or {@code replace}
 * @param field text of the field that goes; null for ADD
 * @param transform text of the new field; null for DROP
 * @param name the name after AS; null without
 */
record PartitionFieldStatement(
    String table, String action, String field, String transform, String name) {

  private static final Map<String, String> FORMS =
      Map.of(
          "add", "ADD PARTITION FIELD <column or transform> [AS name]",
          "drop", "DROP PARTITION FIELD <name, column or transform>",
          "replace",
              "REPLACE PARTITION FIELD <name, column or transform> WITH <column or transform>"
                  + " [AS name]");

  /** Recognises the statement by its tokens; empty when the text is another statement. */
  static Optional<PartitionFieldStatement> recognise(String sql) {
    List<Token> tokens = SqlTokens.ofStatement(sql);
    if (tokens.size() < 6 || !tokens.get(0).isWord("ALTER") || !tokens.get(1).isWord("TABLE")) {
      return Optional.empty();
    }
    int end = SqlTokens.endOfName(tokens, 2);
    if (end < 0 || end + 2 >= tokens.size()) {
      return Optional.empty();
    }
    String action = tokens.get(end).text().toLowerCase(Locale.ROOT);
    boolean recognised =
        tokens.get(end).kind() == Kind.WORD
            && FORMS.containsKey(action)
            && tokens.get(end + 1).isWord("PARTITION")
            && tokens.get(end + 2).isWord("FIELD");
    if (!recognised) {
      return Optional.empty();
    }
    String table = SqlTokens.text(tokens.subList(2, end));
    return Optional.of(parse(table, action, tokens.subList(end + 3, tokens.size())));
  }

  /** A complaint about this statement that shows how it is written. */
  WorkerFailure syntaxError(String text, String why) {
    return syntaxError(table, action, text, why);
  }

  private static PartitionFieldStatement parse(String table, String action, List<Token> rest) {
    List<Token> field = null;
    List<Token> transform = rest;
    if (action.equals("drop")) {
      field = rest;
      transform = null;
    } else if (action.equals("replace")) {
      int with = indexAtTop(rest, "WITH");
      if (with < 0) {
        throw syntaxError(table, action, SqlTokens.text(rest), "the word WITH is missing").raise();
      }
      field = rest.subList(0, with);
      transform = rest.subList(with + 1, rest.size());
    }
    String name = null;
    if (transform != null) {
      int as = indexAtTop(transform, "AS");
      if (as >= 0) {
        name = fieldName(table, action, transform.subList(as + 1, transform.size()));
        transform = transform.subList(0, as);
      }
    }
    return new PartitionFieldStatement(
        table,
        action,
        field == null ? null : checkedText(table, action, field),
        transform == null ? null : checkedText(table, action, transform),
        name);
  }

  private static String fieldName(String table, String action, List<Token> tokens) {
    if (tokens.size() == 1 && tokens.get(0).kind() == Kind.WORD) {
      return tokens.get(0).text();
    }
    if (tokens.size() == 1 && tokens.get(0).kind() == Kind.QUOTED_NAME) {
      String quoted = tokens.get(0).text();
      return quoted.substring(1, quoted.length() - 1).replace("``", "`");
    }
    throw syntaxError(table, action, SqlTokens.text(tokens), "one name has to follow AS").raise();
  }

  /** The text of one column or transform, which will stand between the parentheses of a list. */
  private static String checkedText(String table, String action, List<Token> tokens) {
    String text = SqlTokens.text(tokens);
    if (tokens.isEmpty()) {
      throw syntaxError(table, action, text, "the field is missing").raise();
    }
    int depth = 0;
    for (Token token : tokens) {
      depth += token.isSymbol('(') ? 1 : 0;
      depth -= token.isSymbol(')') ? 1 : 0;
      if (depth < 0) {
        throw syntaxError(table, action, text, "a parenthesis is closed that was not opened")
            .raise();
      }
      if (token.isSymbol(';') || (depth == 0 && token.isSymbol(','))) {
        throw syntaxError(table, action, text, "it is more than one field").raise();
      }
    }
    if (depth != 0) {
      throw syntaxError(table, action, text, "a parenthesis is not closed").raise();
    }
    return text;
  }

  private static WorkerFailure syntaxError(
      String table, String action, String text, String why) {
    String message =
        "[PARTITION_FIELD_SYNTAX] Cannot parse '"
            + text
            + "' in ALTER TABLE "
            + table
            + " "
            + action.toUpperCase(Locale.ROOT)
            + " PARTITION FIELD: "
            + why
            + ". Write "
            + FORMS.get(action)
            + ", for example bucket(16, id).";
    return new WorkerFailure(
        "PARTITION_FIELD_SYNTAX",
        message,
        Map.of("table", table, "text", text, "why", why),
        "42601",
        null);
  }

  private static int indexAtTop(List<Token> tokens, String word) {
    int depth = 0;
    for (int index = 0; index < tokens.size(); index++) {
      Token token = tokens.get(index);
      depth += token.isSymbol('(') ? 1 : 0;
      depth -= token.isSymbol(')') ? 1 : 0;
      if (depth == 0 && token.isWord(word)) {
        return index;
      }
    }
    return -1;
  }
}
