import java.io.File;
import java.sql.Connection;
import java.sql.DriverManager;
import liquibase.Contexts;
import liquibase.Liquibase;
import liquibase.database.Database;
import liquibase.database.DatabaseFactory;
import liquibase.database.jvm.JdbcConnection;
import liquibase.resource.DirectoryResourceAccessor;

/** All change sets of a folder, once and again, then all objects dropped. */
public class Walk {
  public static void main(String[] given) throws Exception {
    try (Connection connection = DriverManager.getConnection(given[0], "leasehold", "")) {
      Database database =
          DatabaseFactory.getInstance()
              .findCorrectDatabaseImplementation(new JdbcConnection(connection));
      DirectoryResourceAccessor folder = new DirectoryResourceAccessor(new File(given[1]));
      Liquibase liquibase = new Liquibase("changelog.yaml", folder, database);
      liquibase.update(new Contexts());
      System.out.println("unrun " + liquibase.listUnrunChangeSets(new Contexts(), null).size());
      liquibase.update(new Contexts());
      liquibase.dropAll();
      System.out.println("done");
    }
  }
}
