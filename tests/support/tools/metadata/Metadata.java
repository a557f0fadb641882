import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.sql.Connection;
import java.sql.DatabaseMetaData;
import java.sql.DriverManager;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Comparator;
import java.util.List;
import java.util.Set;
import java.util.TreeSet;

/** Prints what each method of DatabaseMetaData answers about the schema public, a line a fact. */
public class Metadata {
  /** What is of the driver, of the connection, or of the server's version. */
  static final Set<String> LEFT = Set.of(
      "getConnection", "getURL", "getUserName", "getDatabaseProductVersion",
      "getDatabaseMajorVersion", "getDatabaseMinorVersion", "getClass", "hashCode", "toString",
      "notify", "notifyAll", "wait", "equals", "unwrap", "isWrapperFor", "getMaxNameLength");

  public static void main(String[] given) throws Exception {
    try (Connection connection = DriverManager.getConnection(given[0], given[1], "")) {
      DatabaseMetaData asked = connection.getMetaData();
      Method[] methods = DatabaseMetaData.class.getMethods();
      Arrays.sort(methods, Comparator.comparing(Method::toString));
      for (Method method : methods) {
        if (LEFT.contains(method.getName())) continue;
        for (Object[] values : arguments(method)) {
          String name = method.getName() + Arrays.deepToString(values);
          try {
            Object found = method.invoke(asked, values);
            if (found instanceof ResultSet rows) {
              for (String row : read(rows)) System.out.println(name + " " + row);
            } else {
              System.out.println(name + " = " + found);
            }
          } catch (InvocationTargetException error) {
            Throwable cause = error.getCause();
            String state = cause instanceof SQLException refused ? refused.getSQLState() : "";
            System.out.println(name + " ! " + state + " " + cause.getClass().getName());
          }
        }
      }
    }
  }

  /** The calls of a method: its names are those of the schema, of each table, and of any column. */
  static List<Object[]> arguments(Method method) {
    Class<?>[] kinds = method.getParameterTypes();
    List<Object[]> calls = new ArrayList<>();
    for (String table : new String[] {"ship", "crew"}) {
      Object[] values = new Object[kinds.length];
      int texts = 0;
      for (int i = 0; i < kinds.length; i++) {
        if (kinds[i] == String.class) {
          String[] said = {null, "public", table, null};
          values[i] = method.getName().equals("getCrossReference")
              ? new String[] {null, "public", "ship", null, "public", "crew"}[i]
              : said[Math.min(texts++, 3)];
        } else if (kinds[i] == int.class) {
          values[i] = method.getName().equals("getBestRowIdentifier") ? 1 : ResultSet.TYPE_FORWARD_ONLY;
        } else if (kinds[i] == boolean.class) {
          values[i] = false;
        }
      }
      calls.add(values);
      if (texts < 3) break;
    }
    return calls;
  }

  static TreeSet<String> read(ResultSet rows) throws SQLException {
    TreeSet<String> found = new TreeSet<>();
    int count = rows.getMetaData().getColumnCount();
    while (rows.next()) {
      StringBuilder row = new StringBuilder();
      for (int i = 1; i <= count; i++) {
        row.append(rows.getMetaData().getColumnLabel(i)).append('=').append(rows.getString(i)).append(' ');
      }
      found.add(row.toString());
    }
    return found;
  }
}
