// A thin agent in Java: it follows the versions of one table and holds a lease on the one it uses,
// so that a schema change waits for it as for any agent. What it asks of the ledger is described in
// docs/how-to/hold-leases.md.
//
//   java -cp JARS LeaseAgent.java BOOTSTRAP DATABASE REDIS LEDGER.LUA TABLE TTL_MS
//
// Each line that it prints is a JSON object: the version that it holds, with its columns, or that
// its lease has run out.
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.net.URI;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.SecureRandom;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.Set;
import java.util.TreeSet;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import redis.clients.jedis.Jedis;
import redis.clients.jedis.exceptions.JedisException;
import redis.clients.jedis.exceptions.JedisNoScriptException;

public class LeaseAgent {
  private static final String NAME = "java-agent";
  private static final long SESSION_MAX = (1L << 53) - 1;
  private static final ObjectMapper JSON = new ObjectMapper();

  /** An answer that refuses; its message is the reason. */
  private static class Refused extends Exception {
    Refused(String reason) {
      super(reason);
    }
  }

  private record Answer(String run, List<?> fields) {}

  private final Jedis redis;
  private final String script;
  private final String prefix;
  private final long ttlNs;
  private final Set<Long> held = new TreeSet<>();
  private String digest;
  private long session;
  private long counter; // rises with every call that extends the session
  private long confirmed; // of the last one that was answered
  private String run = "";
  private long expiresNs;
  private long tableId;

  private LeaseAgent(Jedis redis, String script, String database, long ttlMs) {
    this.redis = redis;
    this.script = script;
    this.prefix = "leasehold:{" + database + "}";
    this.ttlNs = ttlMs * 1_000_000;
  }

  private boolean isUsable() {
    return expiresNs != 0 && System.nanoTime() - expiresNs < 0;
  }

  private Answer ask(Object... words) throws Refused {
    List<String> texts = new ArrayList<>();
    for (Object each : words) {
      texts.add(String.valueOf(each));
    }
    if (digest == null) {
      digest = redis.scriptLoad(script);
    }
    List<?> raw;
    try {
      raw = (List<?>) redis.evalsha(digest, List.of(prefix), texts);
    } catch (JedisNoScriptException gone) { // a Redis that was restarted
      digest = redis.scriptLoad(script);
      raw = (List<?>) redis.evalsha(digest, List.of(prefix), texts);
    }
    if (raw.get(0).equals("refused")) {
      String reason = (String) raw.get(2);
      if (Set.of("dead", "expired", "taken").contains(reason)) {
        session = 0; // the ledger does not have it any more: the next call opens another
      }
      throw new Refused(reason);
    }
    return new Answer((String) raw.get(1), raw.subList(2, raw.size()));
  }

  /** Notes an answer that extends the session, from when the call was sent. */
  private void extended(String by, long sentNs, Object vouching) {
    if (!"0".equals(vouching)) {
      throw new IllegalStateException("this Redis has Sentinels: calls have to be vouched for");
    }
    run = by;
    confirmed = counter;
    expiresNs = sentNs + ttlNs - ttlNs / 30; // clocks may run at different rates
  }

  /** Tells the ledger all that is held here; it is how a session begins, too. */
  private void register() throws Refused {
    if (session == 0) {
      session = 1 + (new SecureRandom().nextLong() >>> 11) % SESSION_MAX;
      counter = confirmed = 0;
    }
    counter++;
    List<Object> words = new ArrayList<>(List.of("register", NAME, session, counter));
    for (long version : held) {
      words.add(tableId);
      words.add(version);
    }
    long sentNs = System.nanoTime();
    Answer told = ask(words.toArray());
    for (Object each : (List<?>) told.fields().get(1)) { // what may be held no more
      held.remove(Long.parseLong((String) ((List<?>) each).get(1)));
    }
    extended(told.run(), sentNs, told.fields().get(2));
  }

  /** Extends the session with all its leases. */
  private void renew() throws Refused {
    counter++;
    long sentNs = System.nanoTime();
    Answer told;
    try {
      told = ask("renew", session, counter, held.size(), confirmed);
    } catch (Refused why) {
      if (Set.of("register", "closed").contains(why.getMessage())) {
        register();
        return;
      }
      throw why;
    }
    if (!told.run().equals(run)) { // another ledger's word: it may not know the leases
      register();
      return;
    }
    extended(told.run(), sentNs, told.fields().get(1));
  }

  /** Takes a lease on a version, then gives the older ones back. */
  private void move(long table, long version) throws Refused {
    tableId = table;
    Answer told = ask("acquire", session, counter, table, version);
    held.add(version);
    if (!told.run().equals(run)) {
      register();
      return;
    }
    for (long old : List.copyOf(held)) {
      if (old != version) {
        ask("release", session, counter, table, old);
        held.remove(old);
      }
    }
  }

  public static void main(String[] words) throws Exception {
    Properties settings = new Properties();
    settings.put("bootstrap.servers", words[0]);
    settings.put("isolation.level", "read_committed");
    settings.put("key.deserializer", ByteArrayDeserializer.class.getName());
    settings.put("value.deserializer", ByteArrayDeserializer.class.getName());
    String script = Files.readString(Path.of(words[3]));
    try (KafkaConsumer<byte[], byte[]> consumer = new KafkaConsumer<>(settings);
        Jedis redis = new Jedis(URI.create(words[2]))) {
      var versions = List.of(new TopicPartition(words[1] + ".versions-history", 0));
      consumer.assign(versions);
      consumer.seekToBeginning(versions);
      new LeaseAgent(redis, script, words[1], Long.parseLong(words[5])).follow(consumer, words[4]);
    }
  }

  /** Follows the table: what is newest is held, the session renewed three times in its life. */
  private void follow(KafkaConsumer<byte[], byte[]> consumer, String table) throws Exception {
    JsonNode newest = null;
    long told = 0;
    long renewalNs = System.nanoTime();
    while (true) {
      for (ConsumerRecord<byte[], byte[]> each : consumer.poll(Duration.ofMillis(100))) {
        JsonNode event = JSON.readTree(each.value());
        boolean isOurs =
            newest == null
                ? event.get("table").asText().equals(table)
                : event.get("table_id").asLong() == newest.get("table_id").asLong();
        if (isOurs) {
          newest = event;
        }
      }
      if (told > 0 && !isUsable()) { // before the ledger is asked, which begins anew
        say(Map.of("lapsed", told));
        told = 0;
      }
      try {
        if (session == 0 || System.nanoTime() - renewalNs >= 0) {
          if (session == 0 || expiresNs == 0) {
            register();
          } else {
            renew();
          }
          renewalNs = System.nanoTime() + ttlNs / 3;
        }
        if (!isUsable() || newest == null || newest.get("state").asText().equals("absent")) {
          continue;
        }
        long version = newest.get("version").asLong();
        if (version != told) {
          move(newest.get("table_id").asLong(), version);
          told = version;
          say(Map.of("version", told, "columns", columns(newest)));
        }
      } catch (Refused | JedisException why) { // tried again at once: the lease runs on meanwhile
        System.err.println("the ledger: " + why.getMessage());
      }
    }
  }

  private static List<String> columns(JsonNode event) {
    List<String> names = new ArrayList<>();
    for (JsonNode each : event.get("elements")) {
      if (each.get("kind").asText().equals("column")
          && each.get("state").asText().equals("public")) {
        names.add(each.get("name").asText());
      }
    }
    return names;
  }

  private static void say(Map<String, ?> what) throws Exception {
    System.out.println(JSON.writeValueAsString(what));
    System.out.flush();
  }
}
