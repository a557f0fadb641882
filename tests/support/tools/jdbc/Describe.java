import java.lang.reflect.Method;
import java.sql.Connection;
import java.sql.DatabaseMetaData;
import java.sql.DriverManager;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;

/** What each method of DatabaseMetaData tells of a database, one line for each row. */
class Describe {
  public static void main(String[] words) throws Exception {
    try (Connection connection = DriverManager.getConnection(words[0], words[1], "")) {
      DatabaseMetaData told = connection.getMetaData();
      Method[] methods = DatabaseMetaData.class.getMethods();
      java.util.Arrays.sort(methods, Comparator.comparing(Method::getName));
      for (Method method : methods) {
        if (method.getParameterCount() == 0 && method.getReturnType() != Connection.class) {
          show(method.getName(), () -> method.invoke(told));
        }
      }
      for (String table : new String[] {"ship", "crew", "seen"}) {
        show("columns " + table, () -> told.getColumns(null, "public", table, "%"));
        show("keys " + table, () -> told.getPrimaryKeys(null, "public", table));
        show("imported " + table, () -> told.getImportedKeys(null, "public", table));
        show("exported " + table, () -> told.getExportedKeys(null, "public", table));
        show("indexes " + table, () -> told.getIndexInfo(null, "public", table, false, true));
        show("unique " + table, () -> told.getIndexInfo(null, "public", table, true, false));
        show("best " + table, () -> told.getBestRowIdentifier(null, "public", table, 0, true));
        show("versions " + table, () -> told.getVersionColumns(null, "public", table));
        show("rights " + table, () -> told.getTablePrivileges(null, "public", table));
        show("of columns " + table, () -> told.getColumnPrivileges(null, "public", table, "%"));
      }
      show("cross", () -> told.getCrossReference(null, "public", "ship", null, "public", "crew"));
      show("tables", () -> told.getTables(null, "public", "%", new String[] {"TABLE", "VIEW"}));
      show("others", () -> told.getTables(null, "public", "%", new String[] {"SEQUENCE", "INDEX"}));
      show("schemas", () -> told.getSchemas(null, "public"));
      show("made types", () -> told.getUDTs(null, "public", "%", null));
      show("procedures", () -> told.getProcedures(null, "public", "%"));
      show("functions", () -> told.getFunctions(null, "public", "%"));
      show("parameters", () -> told.getFunctionColumns(null, "public", "%", "%"));
    }
  }

  interface Asked {
    Object ask() throws Exception;
  }

  static void show(String name, Asked asked) {
    try {
      Object found = asked.ask();
      if (!(found instanceof ResultSet)) {
        System.out.println(name + ": " + found);
        return;
      }
      for (String row : rows((ResultSet) found)) {
        System.out.println(name + ": " + row);
      }
    } catch (Exception error) {
      Throwable cause = error.getCause() == null ? error : error.getCause();
      String state = cause instanceof SQLException ? ((SQLException) cause).getSQLState() : "";
      System.out.println(name + " failed: " + cause.getClass().getName() + " " + state);
    }
  }

  static List<String> rows(ResultSet found) throws SQLException {
    List<String> rows = new ArrayList<>();
    int count = found.getMetaData().getColumnCount();
    while (found.next()) {
      StringBuilder row = new StringBuilder();
      for (int number = 1; number <= count; number++) {
        row.append(found.getMetaData().getColumnLabel(number)).append('=');
        row.append(found.getString(number)).append(' ');
      }
      rows.add(row.toString());
    }
    return rows;
  }
}
