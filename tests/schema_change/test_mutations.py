"""Every broken rule and every unsafe order is found by the model that finds none in the menu."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

import pytest

from leasehold.catalog.elements import THIS_VERSION, Check, Column, Index, Missing
from leasehold.catalog.states import State
from leasehold.schema_change.plan.results import JobPlan
from leasehold.schema_change.steps import element_paths
from leasehold.schema_change.steps.element_paths import GONE, NEVER, ElementPath, Stage
from leasehold.sql.syntax.statements import (
    AlterTable,
    AlterType,
)
from leasehold.values.types import Type
from tests.models.explorer import explore
from tests.models.summary import AddLine, ModelLine
from tests.schema_change.changes import (
    TABLE,
    A,
    Change,
    catalog_of,
    changed,
    planned,
    standing,
)
from tests.schema_change.menu import (
    A2,
    A3,
    AB,
    ADD_GENERATED,
    BIG,
    CHECK,
    CONSTRAINT,
    COVERING,
    DIVIDING,
    FAMILY,
    FOREIGN,
    GENERATED_TABLE,
    INDEX,
    NULLS,
    PARTIAL,
    UNIQUE,
    UNIQUE_G,
    UNIQUE_PARTIAL,
    domain_of,
    narrowed,
    widened,
    with_c,
)
from tests.schema_change.model import Model
from tests.schema_change.test_menu import STATES_MAX, title
from tests.support.every_third import every_third

NEW, OVER = 4, 5  # element ids: what is made on TABLE, or c; and what lies over c
PUBLIC = Stage({"state": State.PUBLIC})
WRITE_ONLY = Stage({"state": State.WRITE_ONLY})
DELETE_ONLY = Stage({"state": State.DELETE_ONLY})
FILLING = Stage({"state": State.WRITE_ONLY}, backfill=True, verify=True)
AT_ONCE = ((), (PUBLIC,))
NOT_BACKFILLED = ((DELETE_ONLY,), (PUBLIC,))

STRICT = TABLE.replace("a integer", "a integer NOT NULL")
REQUIRED, DEFAULTED, OPTIONAL, BARE = (
    "integer NOT NULL DEFAULT 7",
    "integer DEFAULT 7",
    "integer",
    "integer NOT NULL",
)


def hidden(state: State = State.DELETE_ONLY, **more: Any) -> Stage:
    """The stage in which every row has the default of a column at once."""
    return Stage({"state": state, "missing": Missing(THIS_VERSION, 7, at_once=True), **more})


def column(kind: str, element_id: int = NEW) -> Column:
    made = changed("ALTER TABLE t DROP COLUMN c", with_c(kind)).base.column("c")
    return replace(made, element_id=element_id)


def index(unique: bool = False, over: int = A, element_id: int = NEW) -> Index:
    return Index(element_id, "i", (over,), unique=unique)


def make_index(*stages: tuple[Stage, ...]) -> Change:
    before_commit, after_commit = stages
    return changed(INDEX, domain=A2).by(ElementPath(index(), True, before_commit, after_commit))


def made_computed(sql: str, *stages: tuple[Stage, ...]) -> Change:
    """The index that `sql` makes, on another way."""
    (made,) = changed("DROP INDEX i", TABLE, sql).base.indexes
    before_commit, after_commit = stages
    loose = replace(made, unique=False)
    return changed(sql, domain=AB).by(ElementPath(loose, True, before_commit, after_commit))


def dropped_computed(sql: str, *after_commit: Stage) -> Change:
    change = changed("DROP INDEX i", TABLE, sql, domain=AB)
    return change.by(
        ElementPath(
            change.base.indexes[0], after_commit=after_commit, irreversible_from=len(after_commit)
        )
    )


def made_unique(*before_commit: Stage) -> Change:
    public = Stage({"state": State.PUBLIC, "unique": True, "unique_enforced": False})
    return changed(UNIQUE, domain=A2).by(ElementPath(index(), True, before_commit, (public,)))


def made_check(before_commit: tuple[Stage, ...], after_commit: tuple[Stage, ...]) -> Change:
    check = Check(NEW, "k", "a <> 1", (A,))
    return changed(CHECK, domain=A3).by(ElementPath(check, True, before_commit, after_commit))


def made_foreign(*before_commit: Stage) -> Change:
    """Over an index that is there already, so that it comes alone."""
    given = (TABLE, CONSTRAINT, "CREATE INDEX over_b ON t (b)")
    (foreign,) = standing(*given, FOREIGN).foreign_keys
    return changed(FOREIGN, *given, domain=FAMILY).by(ElementPath(foreign, True, before_commit, ()))


def added(kind: str, before_commit: tuple[Stage, ...], after_commit: tuple[Stage, ...]) -> Change:
    sql = f"ALTER TABLE t ADD COLUMN c {kind}"
    return changed(sql, domain=domain_of(kind)).by(
        ElementPath(column(kind), True, before_commit, after_commit)
    )


def dropped(kind: str, *after_commit: Stage, over: Index | Check | None = None) -> Change:
    """The column by this way, and `over` by the one that it should go."""
    given = [with_c(kind)]
    match over:
        case Index(unique=unique):
            given.append(f"CREATE {'UNIQUE ' * unique}INDEX i ON t (c)")
        case Check(expression=expression):
            given.append(f"ALTER TABLE t ADD CONSTRAINT k CHECK ({expression})")
    change = changed("ALTER TABLE t DROP COLUMN c", *given, domain=domain_of(kind))
    paths = [
        ElementPath(column(kind), after_commit=after_commit, irreversible_from=len(after_commit))
    ]
    paths += [element_paths.drop_index(index) for index in change.base.indexes]
    paths += [element_paths.drop_check(check) for check in change.base.checks]
    return change.by(*paths)


def dropped_index(*after_commit: Stage) -> Change:
    change = changed("DROP INDEX i", TABLE, INDEX, domain=A2)
    return change.by(
        ElementPath(index(), after_commit=after_commit, irreversible_from=len(after_commit))
    )


def constrained_unseen(*paths: ElementPath) -> Change:
    """ADD COLUMN c … with a constraint over it that does not wait for it."""
    change = changed(f"ALTER TABLE t ADD COLUMN c {REQUIRED}", domain=domain_of(REQUIRED))
    return change.by(element_paths.add_column(column(REQUIRED), at_once=False), *paths)


def renamed(sql: str, element: str) -> Change:
    change = changed(sql, TABLE, INDEX, domain={**A2, "z": (0, 1)})
    base = change.base
    found = {"column": base.column("a"), "index": base.index("i"), "table": base}[element]
    assert found is not None
    return change.by(ElementPath(found, after_commit=(Stage({"name": "z"}),)))


def generated(before_commit: tuple[Stage, ...], after_commit: tuple[Stage, ...]) -> Change:
    change = changed(f"{ADD_GENERATED} (a + 1) STORED", domain=A3)
    made = changed("DROP INDEX i", GENERATED_TABLE, UNIQUE_G).base.column("g")
    return change.by(ElementPath(made, True, before_commit, after_commit))


def ungenerated(
    *after_commit: Stage, irreversible_from: int = NEVER, null: str = "", more: str = ""
) -> Change:
    """The generated column by this way; `more` what else goes, by the way it should."""
    given = GENERATED_TABLE.replace("STORED", f"STORED {null}")
    dropping = ", DROP COLUMN a" if more else ""
    change = changed(f"ALTER TABLE t DROP COLUMN g{dropping}", given, domain={**A3, "g": (5,)})
    paths = [
        ElementPath(
            change.base.column("g"), after_commit=after_commit, irreversible_from=irreversible_from
        )
    ]
    if more:
        paths.append(element_paths.drop_column(change.base.column(more)))
    return change.by(*paths)


BIGINT = Type("bigint")
INTEGER = Type("integer")
BIG_A = TABLE.replace("a integer", "a bigint")
WIDE = TABLE.replace("a integer", "a bigint DEFAULT 5")
DEFAULT_A = TABLE.replace("a integer", "a integer DEFAULT 5")
MOST = (1 << 31) - 1
HELD = (Stage({"type": BIGINT, "narrow": Type("integer")}),)


def retyping(*after_commit: Stage, irreversible_from: int = 0, given: str = TABLE) -> ElementPath:
    """Column a by this way."""
    column = changed("ALTER TABLE t ADD COLUMN x integer", given).base.column("a")
    return ElementPath(column, after_commit=after_commit, irreversible_from=irreversible_from)


REMADE_A = "ALTER TABLE t ALTER a TYPE double precision"


def remade(given: str, *after_commit: Stage) -> Change:
    """Column a of another type under a unique index or a CHECK that is made anew; the column and
    what goes with it by other ways than the plan's."""
    change = changed(AlterTable("t", (AlterType("a", Type("double precision")),)), TABLE, given)
    made = planned(REMADE_A, catalog_of(change.base))
    assert isinstance(made, JobPlan)
    paths = []
    for path in made.paths:
        if isinstance(path.element, Column) and not path.new:
            path = replace(path, after_commit=tuple(s for s in path.after_commit if s.change != {}))
        elif not path.new:
            path = replace(path, after_commit=after_commit)
        paths.append(path)
    return replace(change.by(*paths), domain=A2)


def narrowing(*before_commit: Stage, given: str = "") -> ElementPath:
    """Column a by this way, whose last stage is behind the commit."""
    *held, last = before_commit
    path = retyping(last, given=given or BIG_A)
    return replace(path, before_commit=tuple(held))


class Order(NamedTuple):
    """An unsafe order of steps, and the harm that it must do, as a pattern."""

    words: str
    change: Callable[[], Change]
    harm: str


ENFORCED = Stage({"unique_enforced": True})
NULLABLE_ONLY = Stage({"nullable": False})
ORDERS = [
    Order("absent → public", lambda: make_index(*AT_ONCE), "condition [34] "),
    Order("absent → public", lambda: made_unique(), "condition [346] "),
    Order("absent → public", lambda: made_computed(PARTIAL, *AT_ONCE), "condition [345] "),
    Order("absent → public", lambda: made_computed(DIVIDING, *AT_ONCE), "condition [3456] "),
    Order("absent → public", lambda: added(OPTIONAL, *AT_ONCE), "condition 1 "),
    Order("absent → public", lambda: added(REQUIRED, *AT_ONCE), "condition [12] "),
    Order("absent → public", lambda: added(DEFAULTED, *AT_ONCE), "condition 1 |not its default"),
    Order("absent → public", lambda: made_check(*AT_ONCE), "condition 6 "),
    Order("absent → public", lambda: made_foreign(PUBLIC), "condition 6 "),
    Order("not verified", lambda: made_foreign(WRITE_ONLY, PUBLIC), "condition 6 "),
    Order(
        "NOT NULL public at once",
        lambda: changed("ALTER TABLE t ALTER COLUMN a SET NOT NULL", domain=NULLS).by(
            ElementPath(changed(INDEX).base.column("a"), after_commit=(NULLABLE_ONLY,))
        ),
        "condition 2 ",
    ),
    Order("delete-only → public", lambda: make_index(*NOT_BACKFILLED), "condition 4 "),
    Order("delete-only → public", lambda: made_computed(PARTIAL, *NOT_BACKFILLED), "condition 4 "),
    Order("delete-only → public", lambda: made_computed(COVERING, *NOT_BACKFILLED), "condition 4 "),
    Order(
        "not written before it is public, so nobody is refused",
        lambda: made_computed(DIVIDING, *NOT_BACKFILLED),
        "condition [46] ",
    ),
    Order(
        "unique before it is enforced",
        lambda: made_computed(
            UNIQUE_PARTIAL,
            (DELETE_ONLY, FILLING),
            (Stage({"state": State.PUBLIC, "unique": True}),),
        ),
        "condition 6 ",
    ),
    Order("delete-only → public", lambda: added(REQUIRED, *NOT_BACKFILLED), "condition 2 "),
    Order("delete-only → public", lambda: added(DEFAULTED, *NOT_BACKFILLED), "lacks its default"),
    Order(
        "at once and public", lambda: added(REQUIRED, (), (hidden(State.PUBLIC),)), "condition 1 "
    ),
    Order(
        "at once and public",
        lambda: added(DEFAULTED, (), (hidden(State.PUBLIC),)),
        "condition 1 ",
    ),
    Order(
        "at once when it is public, not before",
        lambda: added(REQUIRED, (DELETE_ONLY,), (hidden(State.PUBLIC),)),
        "lacks its default|condition 2 |not its default",
    ),
    Order(
        "at once when it is public, not before",
        lambda: added(DEFAULTED, (DELETE_ONLY,), (hidden(State.PUBLIC),)),
        "lacks its default|not its default",
    ),
    Order(
        "at once and written before it is public, not `filled`",
        lambda: added(DEFAULTED, (hidden(), WRITE_ONLY), (PUBLIC,)),
        "by a write that does not name it",
    ),
    Order(
        "public without `filled`",
        lambda: added(DEFAULTED, (DELETE_ONLY, FILLING), (PUBLIC,)),
        "by a write that does not name it",
    ),
    Order(
        "public without being filled",
        lambda: added(DEFAULTED, (DELETE_ONLY, WRITE_ONLY, Stage({"filled": True})), (PUBLIC,)),
        "becomes public, and a row lacks its default",
    ),
    Order(
        "enforced while entries are filled, never looked through",
        lambda: made_unique(
            DELETE_ONLY,
            Stage({"state": State.WRITE_ONLY, "unique_enforced": True}, backfill=True),
        ),
        "condition 6 ",
    ),
    Order(
        "unique before it is enforced",
        lambda: made_unique(DELETE_ONLY, FILLING),
        "condition 6 ",
    ),
    Order(
        "filled and enforced, not verified: a duplicate of before",
        lambda: made_unique(
            DELETE_ONLY, Stage({"state": State.WRITE_ONLY}, backfill=True), ENFORCED
        ),
        "condition 6 ",
    ),
    Order(
        "public without validation",
        lambda: made_check((), (WRITE_ONLY, PUBLIC)),
        "condition 6 ",
    ),
    Order(
        "validated before it is enforced",
        lambda: changed("ALTER TABLE t ALTER COLUMN a SET NOT NULL", domain=NULLS).by(
            ElementPath(
                changed(INDEX).base.column("a"),
                before_commit=(Stage({"not_null_enforced": True}),),
                after_commit=(Stage({"nullable": False, "not_null_enforced": False}),),
            )
        ),
        "condition 2 ",
    ),
    Order(
        "looked through before it is enforced",
        lambda: changed("ALTER TABLE t ALTER COLUMN a SET NOT NULL", domain=NULLS).by(
            ElementPath(
                changed(INDEX).base.column("a"),
                before_commit=(Stage({}, verify=True), Stage({"not_null_enforced": True})),
                after_commit=(Stage({"nullable": False, "not_null_enforced": False}),),
            )
        ),
        "condition 2 ",
    ),
    Order(
        "looked through before it is enforced",
        lambda: made_foreign(Stage({"state": State.ABSENT}, verify=True), WRITE_ONLY, PUBLIC),
        "condition 6 ",
    ),
    Order(
        "CHECK does not wait for its column",
        lambda: constrained_unseen(
            ElementPath(
                Check(OVER, "k", "c IS NOT NULL", (NEW,)),
                True,
                (Stage({"state": State.WRITE_ONLY}, verify=True),),
                (PUBLIC,),
            )
        ),
        "a column that it can't name|did all it should is refuted",
    ),
    Order(
        "UNIQUE does not wait for its column",
        lambda: constrained_unseen(
            ElementPath(
                index(over=NEW, element_id=OVER),
                True,
                (DELETE_ONLY, FILLING, Stage({"unique_enforced": True}, verify=True)),
                (Stage({"state": State.PUBLIC, "unique": True, "unique_enforced": False}),),
            )
        ),
        "a column that it can't name",
    ),
    Order("public → absent", lambda: dropped_index(GONE), "condition [345] "),
    Order(
        "public → absent",
        lambda: changed("ALTER TABLE t DROP CONSTRAINT k", TABLE, CHECK, domain=A3).by(
            ElementPath(Check(NEW, "k", "a <> 1", (A,)), after_commit=(GONE,))
        ),
        "condition 6 ",
    ),
    Order(
        "public → absent",
        lambda: changed("ALTER TABLE t ALTER COLUMN a DROP NOT NULL", STRICT, domain=NULLS).by(
            ElementPath(
                changed(INDEX, STRICT).base.column("a"), after_commit=(Stage({"nullable": True}),)
            )
        ),
        "condition 2 ",
    ),
    Order(
        "UNIQUE no longer enforced at once",
        lambda: changed("DROP INDEX i", TABLE, UNIQUE, domain=A2).by(
            ElementPath(
                index(True),
                after_commit=(
                    Stage({"state": State.WRITE_ONLY, "unique": False}),
                    DELETE_ONLY,
                    GONE,
                ),
            )
        ),
        "condition 6 ",
    ),
    Order("public → absent", lambda: dropped(OPTIONAL, GONE), "condition 1 "),
    Order("public → absent", lambda: dropped(REQUIRED, GONE), "condition [12] "),
    Order("public → delete-only", lambda: dropped_index(DELETE_ONLY, GONE), "condition 4 "),
    Order(
        "public → delete-only",
        lambda: dropped_computed(PARTIAL, DELETE_ONLY, GONE),
        "condition 4 ",
    ),
    Order("public → absent", lambda: dropped_computed(COVERING, GONE), "condition [345] "),
    Order("public → delete-only", lambda: dropped(REQUIRED, DELETE_ONLY, GONE), "condition 2 "),
    Order(
        "public → delete-only",
        lambda: dropped(DEFAULTED, DELETE_ONLY, GONE),
        "not its default",
    ),
    Order(
        "still written, not `filled`",
        lambda: dropped(DEFAULTED, WRITE_ONLY, DELETE_ONLY, GONE),
        "by a write that does not name it",
    ),
    Order("NOT NULL is not dropped first", lambda: dropped(BARE, DELETE_ONLY, GONE), "condition 2"),
    Order(
        "NOT NULL is not dropped first",
        lambda: dropped(BARE, WRITE_ONLY, DELETE_ONLY, GONE),
        "a column that it can't name",
    ),
    Order(
        "the column goes before its check",
        lambda: dropped(
            OPTIONAL, DELETE_ONLY, GONE, over=Check(OVER, "k", "c IS NOT NULL", (NEW,))
        ),
        "a column that it can't name",
    ),
    Order(
        "the column goes before its check",
        lambda: dropped(
            REQUIRED, WRITE_ONLY, DELETE_ONLY, GONE, over=Check(OVER, "k", "c > 7", (NEW,))
        ),
        "a column that it can't name",
    ),
    Order(
        "the column is hidden before its UNIQUE is let go",
        lambda: dropped(REQUIRED, WRITE_ONLY, DELETE_ONLY, GONE, over=index(True, NEW, OVER)),
        "a column that it can't name",
    ),
    Order("absent → public", lambda: generated(*AT_ONCE), "condition [12] "),
    Order("delete-only → public", lambda: generated(*NOT_BACKFILLED), "condition 2 "),
    Order(
        "absent → write-only: nobody takes away what is not right any more",
        lambda: generated((FILLING,), (PUBLIC,)),
        "condition 1 |instead of|is refuted",
    ),
    Order(
        "public → delete-only",
        lambda: ungenerated(DELETE_ONLY, Stage({"derived": None}), GONE),
        "condition 2 ",
    ),
    Order(
        "a value may be given while others rely on the expression",
        lambda: ungenerated(Stage({"derived": None})),
        "instead of",
    ),
    Order(
        "NOT NULL is not dropped first",
        lambda: ungenerated(WRITE_ONLY, Stage({"state": State.DELETE_ONLY}), GONE, null="NOT NULL"),
        "a column that it can't name",
    ),
    Order(
        "undone when its NOT NULL is not enforced any more",
        lambda: ungenerated(
            Stage({"nullable": True, "not_null_enforced": True}),
            Stage({"state": State.WRITE_ONLY, "not_null_enforced": False}),
            Stage({"state": State.DELETE_ONLY, "derived": None}),
            GONE,
            irreversible_from=2,
            null="NOT NULL",
        ),
        "condition 2 ",
    ),
    Order(
        "what it is computed from is hidden before it",
        lambda: ungenerated(
            Stage({"nullable": True, "not_null_enforced": True}),
            Stage({"state": State.WRITE_ONLY, "not_null_enforced": False}),
            Stage({"state": State.DELETE_ONLY, "derived": None}),
            GONE,
            null="NOT NULL",
            more="a",
        ),
        "condition 2 |a write is refused",
    ),
    Order(
        "written by one who is not waited for",
        lambda: widened("bigint", "integer", 0, BIG).by(retyping(Stage({"type": BIGINT}))),
        "no integer",
    ),
    Order(
        "undone when a wide value may be there",
        lambda: widened("bigint", "integer", 0, BIG).by(
            retyping(*HELD, Stage({"narrow": None}), Stage({"default": 1}), irreversible_from=2)
        ),
        "no integer",
    ),
    Order(
        "under a CHECK that computes something else with the wider type",
        lambda: changed(
            "ALTER TABLE t ALTER COLUMN a DROP DEFAULT",
            *(DEFAULT_A, CHECK.replace("a <> 1", "a + 1 > 0")),
            domain={"a": (0, MOST)},
        ).by(retyping(*HELD, Stage({"narrow": None}), given=DEFAULT_A)),
        "condition 6 .*check 'k'",
    ),
    Order(
        "the default is a wide value at once",
        lambda: widened("bigint", "integer", 0).by(
            retyping(*HELD, Stage({"narrow": None})), retyping(Stage({"default": BIG}))
        ),
        "no integer",
    ),
    Order(
        "narrower at once",
        lambda: changed(
            "ALTER TABLE t ALTER COLUMN a DROP DEFAULT", WIDE, domain={"a": (0, BIG)}
        ).by(retyping(Stage({"type": Type("integer")}), given=WIDE)),
        "no integer",
    ),
    Order(
        "made anew, and the one before is enforced over what is written no more",
        lambda: remade(
            UNIQUE,
            Stage({"state": State.WRITE_ONLY, "unique": False, "unique_enforced": True}),
            Stage({"state": State.DELETE_ONLY, "unique_enforced": False}),
            GONE,
        ),
        "a write is refused|condition",
    ),
    Order(
        "made anew, and the one before is no more where it is relied on",
        lambda: remade(UNIQUE, GONE),
        "condition",
    ),
    Order(
        "narrower while who writes any value is not waited for",
        lambda: narrowed("integer", "bigint", 0, BIG).by(
            retyping(Stage({"type": INTEGER}), given=BIG_A)
        ),
        "no integer",
    ),
    Order(
        "narrower, and no row is looked through",
        lambda: narrowed("integer", "bigint", 0, BIG).by(
            narrowing(Stage({"narrow": INTEGER}), Stage({"type": INTEGER, "narrow": None}))
        ),
        "no integer",
    ),
    Order(
        "narrower, and rows are looked through before writes are held to it",
        lambda: narrowed("integer", "bigint", 0, BIG).by(
            narrowing(
                Stage({}, verify=True),
                Stage({"narrow": INTEGER}),
                Stage({"type": INTEGER, "narrow": None}),
            )
        ),
        "no integer",
    ),
    Order(
        "narrower for readers while writes are held to it",
        lambda: narrowed("integer", "bigint", 0, BIG).by(
            narrowing(
                Stage({"type": INTEGER, "narrow": INTEGER}, verify=True), Stage({"narrow": None})
            )
        ),
        "no integer",
    ),
    Order(
        "narrower, and the default is a wide value until then",
        lambda: changed(
            "ALTER TABLE t ALTER COLUMN a DROP DEFAULT",
            TABLE.replace("a integer", f"a bigint DEFAULT {BIG}"),
            domain={"a": (0, None)},
        ).by(
            narrowing(
                *(
                    Stage({"narrow": INTEGER}, verify=True),
                    Stage({"type": INTEGER, "narrow": None, "default": None}),
                ),
                given=TABLE.replace("a integer", f"a bigint DEFAULT {BIG}"),
            )
        ),
        "no integer",
    ),
    Order(
        "no alias",
        lambda: renamed("ALTER TABLE t RENAME COLUMN a TO z", "column"),
        "does not know column 'a'",
    ),
    Order(
        "no alias",
        lambda: renamed("ALTER TABLE t RENAME TO z", "table"),
        "does not know the table as 't'",
    ),
    Order(
        "no alias", lambda: renamed("ALTER INDEX i RENAME TO z", "index"), "does not know index 'i'"
    ),
]


def found(model: Model, report: Any, harm: str) -> None:
    """The model found a harm, and it is one of those the mutation stands for."""
    assert report.violation is not None, "the harm of this mutation was not found"
    print(report.violation.words(model.show))
    assert re.search(harm, report.violation.harm), report.violation.harm


@pytest.mark.parametrize("order", every_third(ORDERS, lambda o: o.words))
def test_an_unsafe_order_is_found(order: Order, model_line: AddLine) -> None:
    """On an empty table first: so it is the writers of two versions who do the harm, wherever they
    can, and not the rows that nobody has filled."""
    model = Model(order.change())
    report = explore(model.starts()[:1], model.successors, model.invariant, states_max=STATES_MAX)
    model_line(ModelLine.of(title(model.change), order.words, report))
    found(model, report, order.harm)
