import java.sql.BatchUpdateException;
import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;
import java.util.Arrays;

/** Batches of 1,000 rows, in a transaction and by themselves, with keys and with a row that fails. */
class Batch {
  static final int ROWS = 1_000;

  public static void main(String[] words) throws SQLException {
    for (String more : new String[] {"", "?reWriteBatchedInserts=true", "?prepareThreshold=1"}) {
      try (Connection connection = DriverManager.getConnection(words[0] + more, words[1], "");
          Statement statement = connection.createStatement()) {
        statement.execute("DROP TABLE IF EXISTS batch");
        statement.execute("CREATE TABLE batch (id serial PRIMARY KEY, n int UNIQUE, word text)");
        System.out.println("by itself " + insert(connection, 0));
        connection.setAutoCommit(false);
        System.out.println("in a transaction " + insert(connection, ROWS));
        connection.commit();
        System.out.println("updated " + update(connection));
        connection.commit();
        System.out.println("keys " + keys(connection));
        connection.rollback();
        fail(connection);
        connection.rollback();
        try (ResultSet found =
            statement.executeQuery("SELECT count(*), sum(n), count(DISTINCT word) FROM batch")) {
          found.next();
          System.out.println(found.getInt(1) + " " + found.getLong(2) + " " + found.getInt(3));
        }
        connection.commit();
      }
    }
  }

  static int insert(Connection connection, int from) throws SQLException {
    try (PreparedStatement insert =
        connection.prepareStatement("INSERT INTO batch (n, word) VALUES (?, ?)")) {
      for (int n = from; n < from + ROWS; n++) {
        insert.setInt(1, n);
        insert.setString(2, "w" + n % 7);
        insert.addBatch();
      }
      return insert.executeBatch().length;
    }
  }

  static int update(Connection connection) throws SQLException {
    try (PreparedStatement update =
        connection.prepareStatement("UPDATE batch SET word = ? WHERE n = ?")) {
      for (int n = 0; n < ROWS; n++) {
        update.setString(1, "u" + n % 3);
        update.setInt(2, n);
        update.addBatch();
      }
      return Arrays.stream(update.executeBatch()).sum();
    }
  }

  static int keys(Connection connection) throws SQLException {
    try (PreparedStatement insert =
        connection.prepareStatement(
            "INSERT INTO batch (n) VALUES (?)", Statement.RETURN_GENERATED_KEYS)) {
      for (int n = 2 * ROWS; n < 2 * ROWS + 100; n++) {
        insert.setInt(1, n);
        insert.addBatch();
      }
      insert.executeBatch();
      int count = 0;
      try (ResultSet found = insert.getGeneratedKeys()) {
        while (found.next()) {
          count++;
        }
      }
      return count;
    }
  }

  static void fail(Connection connection) throws SQLException {
    try (PreparedStatement insert =
        connection.prepareStatement("INSERT INTO batch (n) VALUES (?)")) {
      for (int n = 0; n < ROWS; n++) {
        insert.setInt(1, n == ROWS / 2 ? 5 : 10 * ROWS + n);
        insert.addBatch();
      }
      insert.executeBatch();
      System.out.println("a key was taken twice");
    } catch (BatchUpdateException error) {
      System.out.println("failed with " + error.getSQLState());
    }
  }
}
