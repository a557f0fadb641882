import org.jooq.codegen.GenerationTool;
import org.jooq.meta.jaxb.Configuration;
import org.jooq.meta.jaxb.Database;
import org.jooq.meta.jaxb.Generator;
import org.jooq.meta.jaxb.Jdbc;
import org.jooq.meta.jaxb.Logging;
import org.jooq.meta.jaxb.Target;

/** Classes for the tables of a schema, written into a folder. */
public class Generate {
  public static void main(String[] given) throws Exception {
    GenerationTool.generate(new Configuration()
        .withLogging(Logging.WARN)
        .withJdbc(new Jdbc().withUrl(given[0]).withUser(given[1]).withPassword(""))
        .withGenerator(new Generator()
            .withDatabase(new Database()
                .withName("org.jooq.meta.postgres.PostgresDatabase")
                .withInputSchema("public")
                .withOutputCatalogToDefault(true))
            .withGenerate(new org.jooq.meta.jaxb.Generate()
                .withComments(true).withGeneratedAnnotation(false).withPojos(true))
            .withTarget(new Target().withPackageName("made").withDirectory(given[2]))));
  }
}
