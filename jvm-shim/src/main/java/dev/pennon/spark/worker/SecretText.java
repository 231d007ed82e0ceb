package dev.pennon.spark.worker;

import com.fasterxml.jackson.databind.JsonNode;
import java.io.Serializable;

/**
 * A text that may hold storage options, such as the worker's description of a table or of a split:
 * it goes back to the worker as it is, and whatever holds it can be shown.
 */
public record SecretText(String text) implements Serializable {
  private static final long serialVersionUID = 1L;

  public JsonNode json() {
    return Messages.parse(text);
  }

  @Override
  public String toString() {
    return "…";
  }
}
