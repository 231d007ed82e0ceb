package dev.pennon.spark.statements;

import java.util.ArrayList;
import java.util.List;
import org.antlr.v4.runtime.CharStreams;
import org.apache.spark.sql.catalyst.parser.SqlBaseLexer;
import org.apache.spark.sql.catalyst.parser.UpperCaseCharStream;

/**
 * SQL text as the tokens of Spark's own lexer, as far as statements are told apart by them.
 *
 * <p>Comments are no tokens; strings and quoted names are one each, whatever stands in them.
 */
final class SqlTokens {
  private SqlTokens() {}

  /** A token with its place in the text. */
  record Token(String text, int start) {
    int end() {
      return start + text.length();
    }

    boolean is(String word) {
      return text.equalsIgnoreCase(word);
    }

    /** Whether it can be a part of a name: a word, or anything in quotes. */
    boolean isNamePart() {
      char first = text.charAt(0);
      return Character.isLetterOrDigit(first) || "_`'\"".indexOf(first) >= 0;
    }
  }

  static List<Token> of(String sql) {
    SqlBaseLexer lexer = new SqlBaseLexer(new UpperCaseCharStream(CharStreams.fromString(sql)));
    lexer.removeErrorListeners();
    List<Token> tokens = new ArrayList<>();
    int start = 0;
    int codePoints = 0;
    for (org.antlr.v4.runtime.Token token : lexer.getAllTokens()) {
      // The lexer counts code points, a string its UTF-16 units.
      start = sql.offsetByCodePoints(start, token.getStartIndex() - codePoints);
      codePoints = token.getStartIndex();
      if (token.getChannel() == org.antlr.v4.runtime.Token.DEFAULT_CHANNEL) {
        tokens.add(new Token(token.getText(), start));
      }
    }
    return tokens;
  }

  /** Index after a name of several parts that starts at {@code start}, or -1. */
  static int endOfName(List<Token> tokens, int start) {
    int index = start;
    while (index < tokens.size() && tokens.get(index).isNamePart()) {
      index++;
      if (index >= tokens.size() || !tokens.get(index).is(".")) {
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
}
