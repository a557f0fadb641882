// Reads a feed as a table of Flink SQL, with the options of one of Flink's own formats, up to the
// feed's end at the start, and prints each row of the table that it comes to as a line of JSON:
// java -cp JARS FeedTable.java BOOTSTRAP TOPIC NAME=VALUE...
import java.util.Map;
import java.util.TreeMap;
import org.apache.flink.table.api.EnvironmentSettings;
import org.apache.flink.table.api.TableEnvironment;
import org.apache.flink.table.api.TableResult;
import org.apache.flink.types.Row;
import org.apache.flink.types.RowKind;
import org.apache.flink.util.CloseableIterator;

public class FeedTable {
  public static void main(String[] words) throws Exception {
    TableEnvironment tables = TableEnvironment.create(EnvironmentSettings.inStreamingMode());
    tables.getConfig().set("parallelism.default", "1");
    StringBuilder options = new StringBuilder();
    for (int number = 2; number < words.length; number++) {
      String[] option = words[number].split("=", 2);
      options.append(", '" + option[0] + "' = '" + option[1] + "'");
    }
    tables.executeSql(
        "CREATE TABLE feed (id BIGINT, n BIGINT, PRIMARY KEY (id) NOT ENFORCED) WITH ("
            + "'connector' = 'kafka', 'topic' = '" + words[1] + "',"
            + "'properties.bootstrap.servers' = '" + words[0] + "',"
            + "'properties.group.id' = 'flink', 'properties.isolation.level' = 'read_committed',"
            + "'scan.startup.mode' = 'earliest-offset', 'scan.bounded.mode' = 'latest-offset'"
            + options + ")");
    Map<Long, Long> rows = new TreeMap<>();
    TableResult found = tables.executeSql("SELECT id, n FROM feed");
    try (CloseableIterator<Row> changes = found.collect()) {
      while (changes.hasNext()) {
        Row row = changes.next();
        long id = (Long) row.getField(0);
        if (row.getKind() == RowKind.INSERT || row.getKind() == RowKind.UPDATE_AFTER) {
          rows.put(id, (Long) row.getField(1));
        } else {
          rows.remove(id);
        }
      }
    }
    rows.forEach((id, n) -> System.out.println("{\"id\": " + id + ", \"n\": " + n + "}"));
    TableResult counted =
        tables.executeSql("SELECT COUNT(*), SUM(n) FROM feed");
    Row last = null;
    try (CloseableIterator<Row> changes = counted.collect()) {
      while (changes.hasNext()) {
        last = changes.next();
      }
    }
    System.out.println("{\"count\": " + last.getField(0) + ", \"sum\": " + last.getField(1) + "}");
  }
}
