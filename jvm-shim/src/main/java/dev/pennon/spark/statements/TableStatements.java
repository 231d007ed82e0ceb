package dev.pennon.spark.statements;

import com.fasterxml.jackson.databind.node.ObjectNode;
import dev.pennon.spark.catalog.WorkerCatalog;
import dev.pennon.spark.compat.SessionCatalogs;
import dev.pennon.spark.replies.Replies;
import dev.pennon.spark.worker.Messages;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.Optional;
import java.util.Set;
import org.antlr.v4.runtime.CharStreams;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.catalyst.parser.SqlBaseLexer;
import org.apache.spark.sql.catalyst.parser.UpperCaseCharStream;
import org.apache.spark.sql.internal.SQLConf;

/**
 * Statements that Spark's grammar lacks, put into its words: the worker is given the tokens of Spark's
 * own lexer, and says what stands for which of them. Its table of statements is catalog/ddl/statements.py.
 */
final class TableStatements {
  /** The property whose value is a statement's text. */
  static final String PROPERTY = "pennon.statement";

  /** How such a statement starts; those of the second set may be parts of a script. */
  private static final Set<String> STARTS =
      Set.of("ANALYZE", "CREATE", "DESC", "DESCRIBE", "DROP", "FSCK", "MSCK", "OPTIMIZE", "REORG",
          "REPLACE", "RESTORE", "TRUNCATE", "VACUUM");
  private static final Set<String> PARTS = Set.of("ALTER", "SHOW");

  private TableStatements() {}

  /** A token with its place in the text. */
  private record Token(String text, int start) {
    int end() {
      return start + text.length();
    }

    boolean isOneOf(Set<String> words) {
      return words.contains(text.toUpperCase(Locale.ROOT));
    }
  }

  private record RewrittenStatement(int first, int end, String table, List<String> pieces) {}

  private record RewriteStatementsReply(List<RewrittenStatement> statements) {}

  /** The SQL with these statements in Spark's words; the same object where there is none. */
  static String inWordsOfSpark(SparkSession session, String sql) {
    List<Token> tokens = tokens(sql);
    boolean mayBeOne =
        !tokens.isEmpty() && tokens.get(0).isOneOf(STARTS)
            || tokens.stream().anyMatch(token -> token.isOneOf(PARTS));
    if (!mayBeOne || !mayBeNamed(session, tokens)) {
      return sql;
    }
    List<String> texts = new ArrayList<>();
    for (int at = 0; at < tokens.size(); at++) {
      Token token = tokens.get(at);
      boolean isApart = at > 0 && token.start() > tokens.get(at - 1).end();
      texts.add(isApart ? " " + token.text() : token.text());
    }
    ObjectNode request = Messages.request("rewrite_statements");
    request.set("tokens", Messages.strings(texts));
    StringBuilder rewritten = new StringBuilder();
    int copied = 0;
    for (var statement : Replies.answer(request, RewriteStatementsReply.class).statements()) {
      Optional<String> table = PennonParser.fullName(session, statement.table());
      if (table.isPresent()) {
        rewritten.append(sql, copied, tokens.get(statement.first()).start());
        rewritten.append(String.join(table.get(), statement.pieces()));
        copied = tokens.get(statement.end() - 1).end();
      }
    }
    return copied == 0 ? sql : rewritten.append(sql.substring(copied)).toString();
  }

  /** Whether a token can name a table of Pennon, or a part of one. */
  private static boolean mayBeNamed(SparkSession session, List<Token> tokens) {
    return SessionCatalogs.of(session).current() instanceof WorkerCatalog
        || tokens.stream()
            .map(token -> token.text().replace("`", ""))
            .anyMatch(name -> WorkerCatalog.isConfigured(SQLConf.get(), name));
  }

  /** Comments are no tokens; strings and quoted names are one each, whatever stands in them. */
  private static List<Token> tokens(String sql) {
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
}
