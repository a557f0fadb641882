"""The whole menu of schema changes, each as a line: SQL, the table it is made on, the values that
writers put into its columns."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, Final

from leasehold.sql.syntax.statements import (
    AlterTable,
    AlterType,
)
from leasehold.values.types import parse_type
from tests.schema_change.changes import TABLE, Change, Domain, changed

A2: Final[Domain] = {"a": (0, 1)}
A3: Final[Domain] = {"a": (0, 1, None)}
AB: Final[Domain] = {"a": (0, 1), "b": (0, 1)}
SIGNS: Final[Domain] = {"a": (-1, 1, None)}
NULLS: Final[Domain] = {"a": (0, None)}

INDEX: Final = "CREATE INDEX i ON t (a)"
UNIQUE: Final = "CREATE UNIQUE INDEX i ON t (a)"
PARTIAL: Final = "CREATE INDEX i ON t (b) WHERE a = 1"
UNIQUE_PARTIAL: Final = "CREATE UNIQUE INDEX i ON t (b) WHERE a = 1"
COMPUTED: Final = "CREATE INDEX i ON t (abs(a))"
UNIQUE_COMPUTED: Final = "CREATE UNIQUE INDEX i ON t (abs(a))"
COVERING: Final = "CREATE UNIQUE INDEX i ON t (a) INCLUDE (b)"
DIVIDING: Final = "CREATE INDEX i ON t ((1 / a)) WHERE b = 0"
CHECK: Final = "ALTER TABLE t ADD CONSTRAINT k CHECK (a <> 1)"
NOT_VALID: Final = f"{CHECK} NOT VALID"
CONSTRAINT: Final = "ALTER TABLE t ADD CONSTRAINT u UNIQUE (a)"
# Both sides of it are in one table, so that rows stay alike: b refers to the a of any row.
FOREIGN: Final = "ALTER TABLE t ADD CONSTRAINT f FOREIGN KEY (b) REFERENCES t (a)"
FAMILY: Final[Domain] = {"a": (0, 1), "b": (0, 1, None)}

# What a column c may be, and what writers put there beside its default.
COLUMNS: Final[dict[str, tuple[int | None, ...]]] = {
    "integer": (None, 8),
    "integer NOT NULL DEFAULT 7": (8,),
    "integer DEFAULT 7": (None, 8),
    "integer NOT NULL": (8,),
}
ADDABLE: Final = [kind for kind in COLUMNS if kind != "integer NOT NULL"]
OVER_C: Final = {
    "index": ("CREATE INDEX i ON t (c)",),
    "unique": ("CREATE UNIQUE INDEX i ON t (c)",),
    "partial index": ("CREATE INDEX i ON t (a) WHERE c = 8",),
    "unique over an expression": ("CREATE UNIQUE INDEX i ON t ((c - 7)) INCLUDE (a)",),
    "covering index": ("CREATE INDEX i ON t (a) INCLUDE (c)",),
    "check": ("ALTER TABLE t ADD CONSTRAINT k CHECK (c > 6)",),
    "check of NULL": ("ALTER TABLE t ADD CONSTRAINT k CHECK (c IS NULL OR c <> 7)",),
    "check of two": ("ALTER TABLE t ADD CONSTRAINT k CHECK (a < c)",),
    "unique and check": (
        "CREATE UNIQUE INDEX i ON t (c)",
        "ALTER TABLE t ADD CONSTRAINT k CHECK (c > 7)",
    ),
}
# What is asked in the same statement, and for which columns rows may break it.
WITH_C: Final[dict[str, tuple[str, ...]]] = {
    "ADD UNIQUE (c)": ("integer NOT NULL DEFAULT 7", "integer DEFAULT 7"),
    "ADD CHECK (c > 7)": ("integer NOT NULL DEFAULT 7", "integer DEFAULT 7"),
    "ADD CHECK (c IS NOT NULL)": ("integer",),
    "ADD CHECK (a < c)": ("integer NOT NULL DEFAULT 7", "integer DEFAULT 7"),
    "ADD CONSTRAINT k CHECK (a < c) NOT VALID": (),
    "ALTER COLUMN c SET NOT NULL": ("integer",),
    "ALTER COLUMN c DROP DEFAULT": (),
    "ALTER COLUMN c SET DEFAULT 5": (),
}


def with_c(kind: str) -> str:
    return f"CREATE TABLE t (id integer PRIMARY KEY, a integer, b integer, c {kind})"


def domain_of(kind: str, words: str = "") -> Domain:
    """`a < c` is for rows with a = 7: c = 8 holds there and the default does not."""
    values: Domain = {"c": COLUMNS[kind]}
    return {**values, "a": (0, 7)} if "a <" in words else values


def filled_by_key(kind: str) -> Change:
    """ADD COLUMN as it is made while not every process knows how to do without a fill."""
    add = f"ALTER TABLE t ADD COLUMN c {kind}"
    return changed(add, name=f"{add}, by key", domain=domain_of(kind), in_place=False)


def additions() -> Iterator[Change]:
    """ADD COLUMN, alone, with a constraint over it, and in the place of another."""
    required = "integer NOT NULL"  # for a table without rows, beside writers who may insert some
    yield changed(
        f"ALTER TABLE t ADD COLUMN c {required}", domain=domain_of(required), may_fail=True
    )
    for kind in ADDABLE:
        add = f"ALTER TABLE t ADD COLUMN c {kind}"
        yield changed(add, domain=domain_of(kind))
        if "DEFAULT" in kind:
            yield filled_by_key(kind)
        for action, kinds in WITH_C.items():
            if ("DROP DEFAULT" in action and "DEFAULT" not in kind) or (
                action.endswith("SET NOT NULL") and "NOT NULL" in kind
            ):
                continue  # nothing to do
            domain = domain_of(kind, action)
            yield changed(f"{add}, {action}", domain=domain, may_fail=kind in kinds)
        replacing = f"ALTER TABLE t DROP COLUMN c, ADD COLUMN d {kind}"
        values = COLUMNS[kind]
        yield changed(replacing, with_c(kind), domain={"c": values, "d": values})
        for former in COLUMNS:  # under the same name
            again = f"ALTER TABLE t DROP COLUMN c, ADD COLUMN c {kind}"
            both = tuple(value for value in COLUMNS[former] if value in values)
            name = f"{again}, which was {former}"
            yield changed(again, with_c(former), name=name, domain={"c": both})


def removals() -> Iterator[Change]:
    """DROP COLUMN, alone and with what lies over it."""
    drop = "ALTER TABLE t DROP COLUMN c"
    for kind in COLUMNS:
        yield changed(drop, with_c(kind), domain=domain_of(kind))
        for name, given in OVER_C.items():
            if name == "check of NULL" and "DEFAULT" in kind:
                continue  # the default would break it: every INSERT had to name c
            yield changed(drop, with_c(kind), *given, domain=domain_of(kind, str(given)))


def retyped(
    kind: str, definition: str, domain: Domain, *, in_place: bool = False, computed: bool = True
) -> Change:
    """ALTER COLUMN a TYPE, to one that holds every value of the domain."""
    way = " in place" * in_place + ", by images" * (not computed)
    return changed(
        AlterTable("t", (AlterType("a", parse_type(kind)),)),
        TABLE.replace("a integer", f"a {definition}"),
        name=f"ALTER COLUMN a TYPE {kind}, from {definition}{way}",
        domain=domain,
        in_place=in_place,
        computed=computed,
    )


def widened(kind: str, definition: str, *values: Any, given: tuple[str, ...] = ()) -> Change:
    """ALTER COLUMN a TYPE to one that has these values, and the type before not all of them."""
    return changed(
        f"ALTER TABLE t ALTER COLUMN a TYPE {kind}",
        *(TABLE.replace("a integer", f"a {definition}"), *given),
        name=f"ALTER COLUMN a TYPE {kind}, from {definition}{''.join(f', {sql}' for sql in given)}",
        domain={"a": values},
    )


def narrowed(kind: str, definition: str, *values: Any, given: tuple[str, ...] = ()) -> Change:
    """ALTER COLUMN a TYPE to one that has not all of these values, as the type before has."""
    return replace(widened(kind, definition, *values, given=given), may_fail=True)


INDEXES: Final = [
    changed(INDEX, domain=A3),
    changed(UNIQUE, domain=A3, may_fail=True),
    changed(f"{UNIQUE} NULLS NOT DISTINCT", domain=A3, may_fail=True),
    changed(
        "ALTER TABLE t ADD CONSTRAINT u UNIQUE USING INDEX i",
        *(TABLE, f"{UNIQUE} NULLS NOT DISTINCT"),
        domain=A3,
    ),
    changed("DROP INDEX i", TABLE, f"{UNIQUE} NULLS NOT DISTINCT", domain=A3),
    changed("DROP INDEX i", TABLE, INDEX, domain=A3),
    changed("DROP INDEX i", TABLE, UNIQUE, domain=A3),
    changed(CONSTRAINT, domain=A2, may_fail=True),
    changed("ALTER TABLE t DROP CONSTRAINT u", TABLE, CONSTRAINT, domain=A2),
    changed("ALTER INDEX i RENAME TO j", TABLE, UNIQUE, domain=A2),
]
# A row comes into the predicate, or goes, beside the backfill; two values give one key; an entry
# holds more than its key.
COMPUTED_INDEXES: Final = [
    changed(PARTIAL, domain={**AB, **A3}),
    changed(UNIQUE_PARTIAL, domain=AB, may_fail=True),
    changed("DROP INDEX i", TABLE, UNIQUE_PARTIAL, domain=AB),
    changed(COMPUTED, domain=SIGNS),
    changed(UNIQUE_COMPUTED, domain=SIGNS, may_fail=True),
    changed("DROP INDEX i", TABLE, UNIQUE_COMPUTED, domain=SIGNS),
    changed(COVERING, domain=AB, may_fail=True),
    changed("DROP INDEX i", TABLE, COVERING, domain=AB),
    changed(DIVIDING, domain=AB, may_fail=True),
    changed("DROP INDEX i", TABLE, DIVIDING, domain=AB),
    changed(
        "ALTER TABLE t RENAME COLUMN a TO z",
        *(TABLE, "CREATE UNIQUE INDEX i ON t (abs(a), b) WHERE a <> 0"),
        domain={"a": (-1, 0, 1), "z": (-1, 0, 1)},
    ),
    changed("ALTER TABLE t DROP COLUMN a", TABLE, UNIQUE_PARTIAL, domain=AB),
]
CONSTRAINTS: Final = [
    changed("ALTER TABLE t ALTER COLUMN a SET NOT NULL", domain=NULLS, may_fail=True),
    changed(
        "ALTER TABLE t ALTER COLUMN a DROP NOT NULL",
        TABLE.replace("a integer", "a integer NOT NULL"),
        domain=NULLS,
    ),
    changed(CHECK, domain=A3, may_fail=True),
    changed(NOT_VALID, domain=A3),
    changed(
        "ALTER TABLE t VALIDATE CONSTRAINT k",
        *(TABLE, NOT_VALID),
        domain=A3,
        origin=(TABLE,),
        may_fail=True,
    ),
    changed("ALTER TABLE t DROP CONSTRAINT k", TABLE, CHECK, domain=A3),
    changed("ALTER TABLE t DROP CONSTRAINT k", TABLE, NOT_VALID, domain=A3, origin=(TABLE,)),
]
REFERENCES: Final = f"{FOREIGN} NOT VALID"
# What becomes of the rows that refer is part of each write.
ACTING: Final = f"{FOREIGN} ON DELETE CASCADE ON UPDATE SET NULL"
ACTING_TOO: Final = f"{FOREIGN} ON DELETE SET NULL ON UPDATE CASCADE"
FOREIGN_KEYS: Final = [
    changed(ACTING, *(TABLE, CONSTRAINT), domain=FAMILY, may_fail=True),
    changed(ACTING_TOO, *(TABLE, CONSTRAINT), domain=FAMILY, may_fail=True),
    changed("ALTER TABLE t DROP CONSTRAINT f", *(TABLE, CONSTRAINT, ACTING), domain=FAMILY),
    changed(FOREIGN, *(TABLE, CONSTRAINT), domain=FAMILY, may_fail=True),
    changed(REFERENCES, *(TABLE, CONSTRAINT), domain=FAMILY),
    changed(
        "ALTER TABLE t VALIDATE CONSTRAINT f",
        *(TABLE, CONSTRAINT, REFERENCES),
        domain=FAMILY,
        origin=(TABLE, CONSTRAINT, "CREATE INDEX t_b_idx ON t (b)"),
        may_fail=True,
    ),
    changed("ALTER TABLE t DROP CONSTRAINT f", *(TABLE, CONSTRAINT, FOREIGN), domain=FAMILY),
    changed("ALTER TABLE t RENAME CONSTRAINT f TO v", *(TABLE, CONSTRAINT, FOREIGN), domain=FAMILY),
    changed("ALTER TABLE t DROP COLUMN b", *(TABLE, CONSTRAINT, FOREIGN), domain=FAMILY),
    # What a foreign key needs goes after it; what it finds its own rows by stays, UNIQUE no more.
    changed("ALTER TABLE t DROP CONSTRAINT u CASCADE", TABLE, CONSTRAINT, FOREIGN, domain=FAMILY),
    changed("ALTER TABLE t DROP COLUMN a CASCADE", TABLE, CONSTRAINT, ACTING, domain=FAMILY),
    changed(
        "ALTER TABLE t DROP CONSTRAINT w",
        *(TABLE, CONSTRAINT, "ALTER TABLE t ADD CONSTRAINT w UNIQUE (b)", FOREIGN),
        domain=FAMILY,
    ),
]
DEFAULTS: Final = [
    changed("ALTER TABLE t ALTER COLUMN a SET DEFAULT 5", domain=NULLS),
    changed(
        "ALTER TABLE t ALTER COLUMN a DROP DEFAULT",
        TABLE.replace("a integer", "a integer DEFAULT 5"),
        domain=NULLS,
    ),
    changed(
        "ALTER TABLE t ALTER COLUMN a DROP DEFAULT",
        TABLE.replace("a integer", "a integer NOT NULL DEFAULT 5"),
        domain=NULLS,
    ),
]
RENAMES: Final = [
    changed(
        "ALTER TABLE t RENAME COLUMN a TO z",
        *(TABLE, UNIQUE, CHECK),
        domain={"a": (0, 1, 2), "z": (0, 1, 2)},
    ),
    changed("ALTER TABLE t RENAME TO u", TABLE, UNIQUE, domain=A2),
    changed("ALTER TABLE t RENAME CONSTRAINT u TO v", TABLE, CONSTRAINT, domain=A2),
    changed("ALTER TABLE t RENAME CONSTRAINT k TO v", TABLE, CHECK, domain=A3),
    changed(
        "ALTER TABLE t RENAME CONSTRAINT k TO v", *(TABLE, NOT_VALID), domain=A3, origin=(TABLE,)
    ),
]
TYPES: Final = [
    retyped("bigint", "integer", A3),
    retyped("double precision", "integer", A3),
    retyped("bigint", "integer NOT NULL", A2),
    retyped("bigint", "integer", A3, computed=False),
    changed(
        AlterTable(
            "t", (AlterType("a", parse_type("bigint"), "a + coalesce(b, 1) - coalesce(b, 1)"),)
        ),
        name="ALTER COLUMN a TYPE bigint USING a + coalesce(b, 1) - coalesce(b, 1)",
        domain={**A3, "b": (0, 1)},
    ),
]
REMADE: Final = [
    changed(
        AlterTable("t", (AlterType("a", parse_type("double precision")),)),
        *(TABLE, given),
        name=f"ALTER COLUMN a TYPE double precision, {given}",
        domain=domain,
    )
    for given, domain in [
        (INDEX, A3),
        (UNIQUE, A3),
        ("CREATE INDEX i ON t (b) INCLUDE (a)", A2),
        (COMPUTED, SIGNS),
        (PARTIAL, A2),
        (CHECK, A3),
        (NOT_VALID, A3),
    ]
]
BIG: Final = 1 << 40
WIDENED: Final = [
    widened("bigint", "integer", 0, BIG, None),
    widened("integer", "smallint NOT NULL", 0, 1 << 20),
    widened("bigint", "smallint", 0, 1 << 20, BIG, None),
    widened("varchar(3)", "varchar(1)", "a", "abc", None),
    widened("text", "varchar(1) DEFAULT 'd'", "a", "abc", None),
    widened("varchar", "text", "a", "abc", None),
    widened("numeric(5,1)", "numeric(3,1)", "1.5", "1000.5", None),
    widened(
        "bigint", "integer", 0, BIG, None, given=(UNIQUE, "CREATE INDEX j ON t (b) INCLUDE (a)")
    ),
    # What compares alike and no more: the same values are taken by who knows either type.
    widened("bigint", "integer", 0, BIG, None, given=(CHECK,)),
    widened(
        "text", "varchar(1)", "a", "abc", None, given=(CHECK.replace("a <> 1", "length(a) < 3"),)
    ),
    *(
        changed(
            f"ALTER TABLE t ALTER COLUMN {column} TYPE bigint",
            *(TABLE, CONSTRAINT, acting),
            domain={"a": (0, 1), "b": (0, None), column: values},
        )
        # ON UPDATE CASCADE of what is wide to what is not stays refused, as in PostgreSQL.
        for column, values, acting in [
            ("a", (0, BIG), ACTING),
            ("b", (0, BIG, None), ACTING),
            ("b", (0, BIG, None), ACTING_TOO),
        ]
    ),
    changed(
        "ALTER TABLE t ALTER COLUMN a TYPE bigint, ALTER COLUMN b TYPE bigint",
        *(TABLE, CONSTRAINT, ACTING_TOO),
        domain={"a": (0, BIG), "b": (0, BIG, None)},
    ),
    changed(
        f"ALTER TABLE t ALTER COLUMN a TYPE bigint, ALTER COLUMN a SET DEFAULT {BIG}",
        domain={"a": (0, None)},
    ),
    changed(
        "ALTER TABLE t ALTER COLUMN a TYPE bigint, ALTER COLUMN a DROP NOT NULL",
        TABLE.replace("a integer", "a integer NOT NULL"),
        domain={"a": (0, BIG, None)},
    ),
]
NARROWED: Final = [
    narrowed("integer", "bigint", 0, BIG, None),
    narrowed("smallint", "bigint NOT NULL", 0, 1 << 20),
    narrowed("varchar(1)", "text DEFAULT 'd'", "a", "abc", None),
    narrowed("varchar(2)", "varchar(5)", "a ", "a   ", None),
    narrowed("numeric(3,1)", "numeric(5,1)", "1.5", "1000.5", None),
    narrowed(
        "integer", "bigint", 0, BIG, None, given=(UNIQUE, "CREATE INDEX j ON t (b) INCLUDE (a)")
    ),
    narrowed("integer", "bigint", 0, BIG, None, given=(CHECK,)),
    *(
        changed(
            f"ALTER TABLE t ALTER COLUMN {column} TYPE smallint",
            *(TABLE, CONSTRAINT, acting),
            domain={"a": (0, 1), "b": (0, None), column: values},
            may_fail=column == "a",  # what refers has what there is
        )
        for column, values, acting in [
            ("a", (0, 1 << 20), ACTING),
            ("b", (0, 1 << 20, None), ACTING),
            ("b", (0, 1 << 20, None), ACTING_TOO),
        ]
    ),
    changed(
        "ALTER TABLE t ALTER COLUMN a TYPE smallint, ALTER COLUMN a SET DEFAULT 5",
        domain={"a": (0, 1 << 20, None)},
        may_fail=True,
    ),
    changed(
        "ALTER TABLE t ALTER COLUMN a TYPE smallint, ALTER COLUMN a SET NOT NULL",
        domain={"a": (0, 1 << 20, None)},
        may_fail=True,
    ),
]
GENERATED_TABLE: Final = TABLE.replace(")", ", g integer GENERATED ALWAYS AS (a + 1) STORED)")
UNIQUE_G: Final = "CREATE UNIQUE INDEX i ON t (g)"
ADD_GENERATED: Final = "ALTER TABLE t ADD COLUMN g integer GENERATED ALWAYS AS"
GENERATED: Final = [
    changed(f"{ADD_GENERATED} (a + 1) STORED", domain=A3),
    changed(
        f"{ADD_GENERATED} (a + 1) STORED",
        name=f"{ADD_GENERATED} (a + 1) STORED, by images",
        domain=A3,
        computed=False,
    ),
    changed(f"{ADD_GENERATED} (a + b) STORED", domain={**A2, "b": (0, 1)}),
    changed(f"{ADD_GENERATED} (coalesce(a, 7)) STORED NOT NULL", domain=NULLS),
    changed(f"{ADD_GENERATED} (a + 1) STORED NOT NULL", domain=NULLS, may_fail=True),
    changed(f"{ADD_GENERATED} (8 / a) STORED", domain=A2, may_fail=True),
    changed(f"{ADD_GENERATED} (a + 1) STORED UNIQUE", domain=A2, may_fail=True),
    changed(f"{ADD_GENERATED} (a + 1) STORED CHECK (g <> 2)", domain=A2, may_fail=True),
    *(
        changed(f"ALTER TABLE t {actions}", GENERATED_TABLE, *given, domain={**A3, "g": (5, None)})
        for actions, given in [
            ("DROP COLUMN g", ()),
            ("DROP COLUMN g", (UNIQUE_G,)),
            ("DROP COLUMN g", ("ALTER TABLE t ADD CONSTRAINT k CHECK (g <> 2)",)),
            ("DROP COLUMN a, DROP COLUMN g", ()),
            ("DROP COLUMN a CASCADE", (UNIQUE_G,)),
            ("DROP COLUMN g, DROP COLUMN a", (UNIQUE_G,)),
            ("ALTER COLUMN g DROP EXPRESSION", ()),
            ("ALTER COLUMN g DROP EXPRESSION, ALTER COLUMN g SET DEFAULT 5", (UNIQUE_G,)),
            ("ALTER COLUMN g DROP EXPRESSION, DROP COLUMN a", ()),
        ]
    ),
    changed(
        "ALTER TABLE t DROP COLUMN g",
        GENERATED_TABLE.replace("STORED", "STORED NOT NULL"),
        domain=NULLS,
    ),
    changed(
        "ALTER TABLE t DROP COLUMN a, DROP COLUMN g",
        GENERATED_TABLE.replace("STORED", "STORED NOT NULL").replace("a + 1", "8 / a"),
        domain=A2,
    ),
    changed("ALTER TABLE t RENAME COLUMN a TO z", GENERATED_TABLE, domain={**A3, "z": (0, 1)}),
    changed(UNIQUE_G, GENERATED_TABLE, domain=A3, may_fail=True),
    changed("DROP INDEX i", GENERATED_TABLE, UNIQUE_G, domain=A3),
]
TABLES: Final = [changed("DROP TABLE t", TABLE, UNIQUE, domain=A2)]
COMBINED: Final = [
    changed(f"ALTER TABLE t {actions}", TABLE, *given, domain=domain, may_fail=may_fail)
    for actions, given, domain, may_fail in [
        ("ALTER COLUMN a SET NOT NULL, ALTER COLUMN a SET DEFAULT 5", (), NULLS, True),
        ("DROP COLUMN a, ALTER COLUMN b SET DEFAULT 5", (UNIQUE,), {**A2, "b": (0, None)}, False),
        ("DROP COLUMN a, ADD COLUMN c integer DEFAULT 7", (UNIQUE,), {**A2, "c": (8,)}, False),
        ("DROP COLUMN a, ADD CHECK (b = 0)", (CHECK,), {"a": (0, 2), "b": (0, 1)}, True),
        ("DROP CONSTRAINT u, ADD CONSTRAINT v UNIQUE (a)", (CONSTRAINT,), A2, False),
        ("DROP CONSTRAINT k, ADD CONSTRAINT u UNIQUE (a)", (CHECK,), {"a": (0, 2)}, True),
        ("ADD CONSTRAINT u UNIQUE (a), ADD CONSTRAINT k CHECK (a <> 1)", (), A3, True),
        ("ALTER COLUMN a SET NOT NULL, ADD CONSTRAINT u UNIQUE (a)", (), NULLS, True),
        ("ALTER COLUMN a TYPE bigint, ALTER COLUMN a SET NOT NULL", (), NULLS, True),
    ]
]
ADDITIONS: Final = list(additions())
REMOVALS: Final = list(removals())
MENU: Final = [
    *(*INDEXES, *COMPUTED_INDEXES, *CONSTRAINTS, *FOREIGN_KEYS, *DEFAULTS, *RENAMES, *TYPES),
    *REMADE,
    *WIDENED,
    *NARROWED,
    *(*TABLES, *GENERATED),
    *(*ADDITIONS, *REMOVALS, *COMBINED),
]
