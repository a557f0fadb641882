import jakarta.persistence.CascadeType;
import jakarta.persistence.Column;
import jakarta.persistence.ElementCollection;
import jakarta.persistence.Entity;
import jakarta.persistence.EnumType;
import jakarta.persistence.Enumerated;
import jakarta.persistence.GeneratedValue;
import jakarta.persistence.GenerationType;
import jakarta.persistence.Id;
import jakarta.persistence.Index;
import jakarta.persistence.LockModeType;
import jakarta.persistence.ManyToOne;
import jakarta.persistence.OneToMany;
import jakarta.persistence.Table;
import jakarta.persistence.Version;
import java.math.BigDecimal;
import java.time.Instant;
import java.time.LocalDate;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import java.util.UUID;
import org.hibernate.SessionFactory;
import org.hibernate.cfg.Configuration;
import org.hibernate.exception.ConstraintViolationException;

/** A schema made of entities, brought up to date for others, validated, and rows by them. */
public class Walk {
  public enum Kind { SMALL, LARGE }

  @Entity(name = "Author") @Table(name = "author")
  public static class Author {
    @Id @GeneratedValue(strategy = GenerationType.SEQUENCE) Long id;
    @Column(unique = true, nullable = false, length = 40) String name;
    @OneToMany(mappedBy = "author", cascade = CascadeType.ALL) List<Book> books = new ArrayList<>();
    @Version int version;
  }

  @Entity(name = "Book") @Table(name = "book", indexes = @Index(columnList = "day, title desc"))
  public static class Book {
    @Id @GeneratedValue(strategy = GenerationType.IDENTITY) Long id;
    @ManyToOne(optional = false) Author author;
    String title;
    @Column(precision = 8, scale = 2) BigDecimal price;
    Instant made;
    LocalDate day;
    UUID code;
    boolean sold;
    double weight;
    byte[] cover;
    @Enumerated(EnumType.STRING) Kind kind;
    @ElementCollection Set<String> tags = Set.of();
  }

  @Entity(name = "Later") @Table(name = "author", indexes = @Index(columnList = "born"))
  public static class Later {
    @Id @GeneratedValue(strategy = GenerationType.SEQUENCE) Long id;
    @Column(unique = true, nullable = false, length = 40) String name;
    LocalDate born;
    @Column(columnDefinition = "text default 'none'") String note;
    @Version int version;
  }

  static SessionFactory open(String url, String user, String what, Class<?>... entities) {
    Configuration made = new Configuration();
    for (Class<?> each : entities) made.addAnnotatedClass(each);
    made.setProperty("hibernate.connection.url", url);
    made.setProperty("hibernate.connection.username", user);
    made.setProperty("hibernate.hbm2ddl.auto", what);
    made.setProperty("hibernate.hbm2ddl.halt_on_error", "true");
    return made.buildSessionFactory();
  }

  public static void main(String[] given) {
    String url = given[0];
    try (SessionFactory opened = open(url, given[1], "update", Author.class, Book.class)) {
      opened.inTransaction(session -> {
        Author author = new Author();
        author.name = "a";
        for (int number = 0; number < 3; number++) {
          Book book = new Book();
          book.author = author;
          book.title = "t" + number;
          book.price = new BigDecimal("1.50");
          book.made = Instant.parse("2026-01-02T03:04:05Z");
          book.day = LocalDate.of(2026, 1, 2 + number);
          book.code = new UUID(1, number);
          book.cover = new byte[] {0, 1, (byte) number};
          book.kind = Kind.LARGE;
          book.tags = Set.of("x", "y");
          author.books.add(book);
        }
        session.persist(author);
      });
      opened.inTransaction(session -> {
        Author author = session.createQuery("from Author where name = 'a'", Author.class)
            .setLockMode(LockModeType.PESSIMISTIC_WRITE).getSingleResult();
        author.name = "b";
        session.createMutationQuery("update Book set price = price * 2 where day > :day")
            .setParameter("day", LocalDate.of(2026, 1, 2)).executeUpdate();
      });
      try {
        opened.inTransaction(session -> {
          Author author = new Author();
          author.name = "b";
          session.persist(author);
        });
      } catch (ConstraintViolationException refused) {
        System.out.println("refused " + refused.getSQLState());
      }
      opened.inSession(session -> System.out.println("found " + session.createQuery(
          "select a.name, count(b), sum(b.price), max(a.version) from Author a join a.books b"
              + " where b.kind = LARGE and 'x' member of b.tags group by a.name order by 1",
          Object[].class).list().stream().map(java.util.Arrays::toString).toList()));
    }
    try (SessionFactory opened = open(url, given[1], "validate", Author.class, Book.class)) {
      System.out.println("valid");
    }
    try (SessionFactory opened = open(url, given[1], "update", Later.class)) {
      opened.inTransaction(session -> {
        Later later = new Later();
        later.name = "c";
        later.born = LocalDate.of(1900, 1, 1);
        session.persist(later);
      });
    }
    try (SessionFactory opened = open(url, given[1], "validate", Later.class)) {
      opened.inSession(session -> System.out.println("later "
          + session.createQuery("select count(*) from Later", Long.class).getSingleResult()));
    }
    try (SessionFactory opened = open(url, given[1], "create-drop", Author.class, Book.class)) {
      opened.inSession(session -> System.out.println("empty "
          + session.createQuery("select count(*) from Author", Long.class).getSingleResult()));
    }
  }
}
