import java.util.Arrays;
import org.flywaydb.core.Flyway;
import org.flywaydb.core.api.MigrationInfo;

/** A baseline of a database that has a table, all migrations behind it, validated, then all dropped. */
public class Walk {
  public static void main(String[] given) {
    Flyway flyway =
        Flyway.configure()
            .dataSource(given[0], "leasehold", "")
            .locations("filesystem:" + given[1])
            .cleanDisabled(false)
            .load();
    flyway.baseline();
    System.out.println("migrated " + flyway.migrate().migrationsExecuted);
    flyway.validate();
    System.out.println("again " + flyway.migrate().migrationsExecuted);
    for (MigrationInfo each : flyway.info().all()) {
      System.out.println(each.getVersion() + " " + each.getState());
    }
    flyway.repair();
    flyway.clean();
    System.out.println("left " + Arrays.toString(flyway.info().applied()));
  }
}
