package dev.pennon.spark.statements;

import java.util.ArrayList;
import java.util.List;

/**
 * Cuts SQL text into tokens, as far as statements are told apart by them.
 *
 * <p>Comments are no tokens; strings and quoted names are one each, whatever stands in them.
 */
final class SqlTokens {
  /** What a token is; everything else is a symbol of one character. */
  enum Kind {
    WORD,
    QUOTED_NAME,
    STRING,
    SYMBOL
  }

  /** A token with its place in the text. */
  record Token(Kind kind, String text, int start) {
    int end() {
      return start + text.length();
    }

    boolean isWord(String word) {
      return kind == Kind.WORD && text.equalsIgnoreCase(word);
    }

    boolean isSymbol(char symbol) {
      return kind == Kind.SYMBOL && text.charAt(0) == symbol;
    }
  }

  private final String sql;
  private final List<Token> tokens = new ArrayList<>();
  private int position;

  private SqlTokens(String sql) {
    this.sql = sql;
  }

  static List<Token> of(String sql) {
    SqlTokens cutter = new SqlTokens(sql);
    while (cutter.position < sql.length()) {
      cutter.next();
    }
    return cutter.tokens;
  }

  /** Index after a name of several parts that starts at {@code start}, or -1. */
  static int endOfName(List<Token> tokens, int start) {
    int index = start;
    while (index < tokens.size()) {
      Kind kind = tokens.get(index).kind();
      if (kind == Kind.SYMBOL) {
        return -1;
      }
      index++;
      if (index >= tokens.size() || !tokens.get(index).isSymbol('.')) {
        return index;
      }
      index++;
    }
    return -1;
  }

  /** The tokens as text again: a space where there was a gap, whatever filled it. */
  static String text(List<Token> tokens) {
    StringBuilder text = new StringBuilder();
    int end = -1;
    for (Token token : tokens) {
      if (end >= 0 && token.start() > end) {
        text.append(' ');
      }
      text.append(token.text());
      end = token.end();
    }
    return text.toString();
  }

  private void next() {
    char first = sql.charAt(position);
    if (Character.isWhitespace(first)) {
      position++;
    } else if (sql.startsWith("--", position)) {
      skipLineComment();
    } else if (sql.startsWith("/*", position)) {
      skipBracketedComment();
    } else if (first == '`') {
      add(Kind.QUOTED_NAME, endOfQuoted('`', false));
    } else if (first == '\'' || first == '"') {
      add(Kind.STRING, endOfQuoted(first, true));
    } else if (isWordPart(first)) {
      int end = position;
      while (end < sql.length() && isWordPart(sql.charAt(end))) {
        end++;
      }
      add(Kind.WORD, end);
    } else {
      add(Kind.SYMBOL, position + 1);
    }
  }

  private void add(Kind kind, int end) {
    tokens.add(new Token(kind, sql.substring(position, end), position));
    position = end;
  }

  private static boolean isWordPart(char character) {
    return Character.isLetterOrDigit(character) || character == '_';
  }

  /** A backslash before the end of the line continues the comment. */
  private void skipLineComment() {
    while (position < sql.length() && sql.charAt(position) != '\n') {
      position += sql.startsWith("\\\n", position) ? 2 : 1;
    }
  }

  private void skipBracketedComment() {
    int depth = 0;
    do {
      if (sql.startsWith("/*", position)) {
        depth++;
        position += 2;
      } else if (sql.startsWith("*/", position)) {
        depth--;
        position += 2;
      } else {
        position++;
      }
    } while (depth > 0 && position < sql.length());
  }

  /** The end of a quoted token; a doubled quote, or one after a backslash, does not end it. */
  private int endOfQuoted(char quote, boolean backslashes) {
    int end = position + 1;
    while (end < sql.length()) {
      char character = sql.charAt(end);
      if (backslashes && character == '\\') {
        end += 2;
      } else if (character != quote) {
        end++;
      } else if (end + 1 < sql.length() && sql.charAt(end + 1) == quote) {
        end += 2;
      } else {
        return end + 1;
      }
    }
    return sql.length();
  }
}
