import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.Statement;
import org.postgresql.PGConnection;
import org.postgresql.PGNotification;

/** Listens by JDBC, tells another connection that it does, and prints what it hears up to "end". */
class Listen {
  public static void main(String[] words) throws Exception {
    try (Connection listener = DriverManager.getConnection(words[0], "leasehold", "");
        Connection sender = DriverManager.getConnection(words[0], "leasehold", "")) {
      try (Statement statement = listener.createStatement()) {
        statement.execute("LISTEN news");
      }
      sender.setAutoCommit(false);
      try (Statement statement = sender.createStatement()) {
        statement.execute("NOTIFY news, 'first'");
        statement.execute("SELECT pg_notify('news', 'second')");
        sender.commit();
        statement.execute("NOTIFY news, 'never'");
        sender.rollback();
        statement.execute("NOTIFY news, 'end'");
        sender.commit();
      }
      PGConnection waits = listener.unwrap(PGConnection.class);
      boolean ended = false;
      while (!ended) {
        for (PGNotification heard : waits.getNotifications(10_000)) {
          System.out.println(heard.getName() + " " + heard.getParameter());
          ended = heard.getParameter().equals("end");
        }
      }
    }
  }
}
