package dev.pennon.spark.replies;

import com.fasterxml.jackson.core.JsonParser;
import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.DeserializationContext;
import com.fasterxml.jackson.databind.DeserializationFeature;
import com.fasterxml.jackson.databind.JsonDeserializer;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.MapperFeature;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.PropertyNamingStrategies;
import com.fasterxml.jackson.databind.json.JsonMapper;
import com.fasterxml.jackson.databind.module.SimpleModule;
import com.fasterxml.jackson.databind.node.NullNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import dev.pennon.spark.failures.WorkerFailure;
import dev.pennon.spark.worker.Messages;
import dev.pennon.spark.worker.SecretText;
import dev.pennon.spark.worker.WorkerConnection;
import java.io.IOException;
import java.util.OptionalLong;
import java.util.function.Function;
import org.apache.spark.sql.connector.expressions.SortOrder;
import org.apache.spark.sql.connector.expressions.Transform;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.StructType;

/**
 * Replies of the worker as records. A record has the name under which the package declares the
 * message, and a component for each of its fields: {@code filterColumns} for {@code filter_columns}.
 */
public final class Replies {
  private static final ObjectMapper MAPPER =
      JsonMapper.builder()
          .enable(MapperFeature.ACCEPT_CASE_INSENSITIVE_ENUMS)
          .propertyNamingStrategy(PropertyNamingStrategies.SNAKE_CASE)
          .enable(
              DeserializationFeature.FAIL_ON_MISSING_CREATOR_PROPERTIES,
              DeserializationFeature.FAIL_ON_NULL_FOR_PRIMITIVES)
          // That a stream follows is for the connection; what is not declared was refused there.
          .disable(DeserializationFeature.FAIL_ON_UNKNOWN_PROPERTIES)
          .addModule(
              new SimpleModule()
                  .addDeserializer(Transform.class, reader(SparkTransforms::transformFromJson))
                  .addDeserializer(SortOrder.class, reader(SparkTransforms::orderFromJson))
                  .addDeserializer(SecretText.class, reader(Replies::toSecret))
                  .addDeserializer(OptionalLong.class, reader(Replies::toOptional))
                  .addDeserializer(StructType.class, reader(Replies::toSchema)))
          .build();

  private Replies() {}

  /** Sends a request as {@link WorkerConnection#answer}, and reads the reply. */
  public static <R extends Record> R answer(ObjectNode request, Class<R> kind) {
    return read(WorkerConnection.answer(request), kind);
  }

  /** Reads a reply, of which every field has to be there. */
  public static <R extends Record> R read(JsonNode reply, Class<R> kind) {
    try {
      return MAPPER.treeToValue(reply, kind);
    } catch (JsonProcessingException e) {
      // Its text may have a value, and a value may be a storage option.
      throw WorkerFailure.protocol("a " + kind.getSimpleName() + " is not as declared", null);
    }
  }

  /** A number that may be null. */
  private static OptionalLong toOptional(JsonNode number) {
    return number.isNull() ? OptionalLong.empty() : OptionalLong.of(number.asLong());
  }

  private static SecretText toSecret(JsonNode text) {
    return new SecretText(text.asText());
  }

  private static StructType toSchema(JsonNode json) {
    return (StructType) DataType.fromJson(Messages.print(json));
  }

  private static <T> JsonDeserializer<T> reader(Function<JsonNode, T> reader) {
    return new JsonDeserializer<>() {
      @Override
      public T deserialize(JsonParser parser, DeserializationContext context) throws IOException {
        return reader.apply(context.readTree(parser));
      }

      @Override
      public T getNullValue(DeserializationContext context) {
        return reader.apply(NullNode.getInstance());
      }
    };
  }
}
