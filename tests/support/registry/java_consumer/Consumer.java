// Reads a feed in Avro by a schema registry with Kafka's own client and Avro's own reader, and
// prints each message as a line of JSON: java -cp JARS Consumer.java BOOTSTRAP TOPIC REGISTRY COUNT
import com.fasterxml.jackson.databind.ObjectMapper;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.ByteBuffer;
import java.time.Duration;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import org.apache.avro.Schema;
import org.apache.avro.generic.GenericDatumReader;
import org.apache.avro.io.DecoderFactory;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;

public class Consumer {
  private static final int HEAD_BYTES = 5;

  private final HttpClient http = HttpClient.newHttpClient();
  private final ObjectMapper json = new ObjectMapper();
  private final Map<Integer, Schema> schemas = new HashMap<>();
  private final String registry;

  private Consumer(String registry) {
    this.registry = registry;
  }

  public static void main(String[] words) throws Exception {
    Properties settings = new Properties();
    settings.put("bootstrap.servers", words[0]);
    settings.put("group.id", "java-consumer");
    settings.put("isolation.level", "read_committed");
    settings.put("auto.offset.reset", "earliest");
    settings.put("key.deserializer", ByteArrayDeserializer.class.getName());
    settings.put("value.deserializer", ByteArrayDeserializer.class.getName());
    Consumer reader = new Consumer(words[2]);
    int left = Integer.parseInt(words[3]);
    try (KafkaConsumer<byte[], byte[]> consumer = new KafkaConsumer<>(settings)) {
      consumer.subscribe(List.of(words[1]));
      while (left > 0) {
        for (ConsumerRecord<byte[], byte[]> each : consumer.poll(Duration.ofSeconds(1))) {
          System.out.println(
              "{\"key\": " + reader.read(each.key()) + ", \"value\": " + reader.read(each.value()) + "}");
          left--;
        }
      }
    }
  }

  /** Returns the JSON of a message in Confluent's wire format, null of none. */
  private String read(byte[] data) throws Exception {
    if (data == null) {
      return "null";
    }
    ByteBuffer head = ByteBuffer.wrap(data);
    if (head.get() != 0) {
      throw new IllegalStateException("not in Confluent's wire format");
    }
    Schema schema = schema(head.getInt());
    var decoder =
        DecoderFactory.get().binaryDecoder(data, HEAD_BYTES, data.length - HEAD_BYTES, null);
    return new GenericDatumReader<>(schema).read(null, decoder).toString();
  }

  private Schema schema(int number) throws Exception {
    if (!schemas.containsKey(number)) {
      HttpRequest asked =
          HttpRequest.newBuilder(URI.create(registry + "/schemas/ids/" + number)).build();
      HttpResponse<String> answer = http.send(asked, HttpResponse.BodyHandlers.ofString());
      if (answer.statusCode() != 200) {
        throw new IllegalStateException("the registry says " + answer.statusCode());
      }
      String text = json.readTree(answer.body()).get("schema").asText();
      schemas.put(number, new Schema.Parser().parse(text));
    }
    return schemas.get(number);
  }
}
