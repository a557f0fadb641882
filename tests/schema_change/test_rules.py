"""Each ⚠ rule of the protocol is turned off, and the model finds the harm that it prevents."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

import pytest

from tests.models.explorer import explore
from tests.models.summary import AddLine, ModelLine
from tests.schema_change.changes import TABLE, Change, changed
from tests.schema_change.menu import (
    A2,
    A3,
    AB,
    ACTING,
    ADD_GENERATED,
    CHECK,
    CONSTRAINT,
    DIVIDING,
    FAMILY,
    FOREIGN,
    INDEX,
    NULLS,
    PARTIAL,
    UNIQUE,
    UNIQUE_PARTIAL,
    domain_of,
    filled_by_key,
    retyped,
    with_c,
)
from tests.schema_change.model import Model
from tests.schema_change.rules import EVERY_RULE
from tests.schema_change.test_menu import STATES_MAX, explored, title
from tests.schema_change.test_mutations import DEFAULTED, OPTIONAL, REQUIRED, found
from tests.schema_change.world import World
from tests.support.every_third import every_third

CREATE_INDEX = changed(INDEX, domain=A2)
CREATE_UNIQUE = changed(UNIQUE, domain=A2)
CREATE_PARTIAL = changed(PARTIAL, domain=AB)
CREATE_UNIQUE_PARTIAL = changed(UNIQUE_PARTIAL, domain=AB)
CREATE_DIVIDING = changed(DIVIDING, domain=AB)
ADD_OPTIONAL, REQUIRED_AT_ONCE, DEFAULTED_AT_ONCE = (
    changed(f"ALTER TABLE t ADD COLUMN c {kind}", domain=domain_of(kind))
    for kind in (OPTIONAL, REQUIRED, DEFAULTED)
)
AT_ONCE = [REQUIRED_AT_ONCE, DEFAULTED_AT_ONCE]
ADD_REQUIRED, ADD_DEFAULTED = filled_by_key(REQUIRED), filled_by_key(DEFAULTED)
RETYPE = retyped("double precision", "integer", A3)
GENERATE = changed(f"{ADD_GENERATED} (coalesce(a, 7)) STORED", domain=NULLS)
COMPUTED_ONES = [RETYPE, GENERATE]
DROP_INDEX = changed("DROP INDEX i", TABLE, INDEX, domain=A2)
DROP_PARTIAL = changed("DROP INDEX i", TABLE, PARTIAL, domain=AB)
DROP_UNIQUE = changed("DROP INDEX i", TABLE, UNIQUE, domain=A2)
DROP_REQUIRED = changed("ALTER TABLE t DROP COLUMN c", with_c(REQUIRED), domain=domain_of(REQUIRED))
DROP_OPTIONAL = changed("ALTER TABLE t DROP COLUMN c", with_c(OPTIONAL), domain=domain_of(OPTIONAL))
ADD_CHECK = changed(CHECK, domain=A2)
DROP_CHECK = changed("ALTER TABLE t DROP CONSTRAINT k", TABLE, CHECK, domain=A2)
SET_NOT_NULL = changed("ALTER TABLE t ALTER COLUMN a SET NOT NULL", domain=NULLS)
RENAME = changed("ALTER TABLE t RENAME COLUMN a TO z", domain={**A2, "z": (0, 1)})
ADD_ACTING = changed(ACTING, TABLE, CONSTRAINT, domain=FAMILY)
OVER_B = "CREATE INDEX over_b ON t (b)"  # so that a foreign key comes alone
CONSTRAINED = [
    ADD_CHECK,
    SET_NOT_NULL,
    changed(FOREIGN, TABLE, CONSTRAINT, OVER_B, domain=FAMILY),
]
DROP_ACTING = changed(
    "ALTER TABLE t DROP CONSTRAINT f", *(TABLE, CONSTRAINT, ACTING), domain=FAMILY
)
FILLED = [CREATE_INDEX, CREATE_UNIQUE, CREATE_PARTIAL, ADD_REQUIRED, ADD_DEFAULTED]


class Broken(NamedTuple):
    """A rule that is off, what happens then, to which change, and the harm as a pattern."""

    rule: str
    words: str
    change: Change
    off: dict[str, bool]
    harm: str


def broken(rule: str, words: str, harm: str, *changes: Change, **off: bool) -> list[Broken]:
    return [Broken(rule, words, change, off, harm) for change in changes]


DRAINED = [CREATE_INDEX, CREATE_UNIQUE, ADD_OPTIONAL, ADD_REQUIRED, ADD_DEFAULTED, ADD_CHECK]
DRAINED += [
    *AT_ONCE,
    CREATE_PARTIAL,
    CREATE_UNIQUE_PARTIAL,
    DROP_PARTIAL,
    SET_NOT_NULL,
    DROP_INDEX,
    DROP_UNIQUE,
    DROP_OPTIONAL,
    DROP_REQUIRED,
    DROP_CHECK,
    RENAME,
]
MISREAD = "a reader of images sees None"
OLD_HARM = "condition [1-6] |not its default|does not name it"
BROKEN = [
    *broken(
        "TRUNCATE",
        "only of what is public",
        "condition 5 ",
        *(CREATE_INDEX, CREATE_UNIQUE, DROP_INDEX, DROP_UNIQUE),
        truncate_whole=False,
    ),
    *broken(
        "actions",
        "act once public",
        "is to follow is refused",
        *(ADD_ACTING, DROP_ACTING),
        acts_early=False,
    ),
    *broken("D2 D4 drain", "not waited for", f"{OLD_HARM}|holds is refused", *DRAINED, drain=False),
    *broken(
        "D2 D4 D5",
        "three versions at once",
        f"{OLD_HARM}|does not know",
        *DRAINED,
        drain=False,
        two_versions=False,
    ),
    *broken(
        "D5 fence",
        "a straggler of v-1 is taken",
        f"{OLD_HARM}|a reader of images sees 7",
        *(CREATE_INDEX, CREATE_UNIQUE, CREATE_PARTIAL, CREATE_UNIQUE_PARTIAL, CREATE_DIVIDING),
        *(ADD_OPTIONAL, ADD_REQUIRED, ADD_DEFAULTED, *AT_ONCE),
        *(ADD_CHECK, SET_NOT_NULL),
        fence=False,
    ),
    *broken(
        "D5 fence first",
        "filled and verified before it",
        "condition [246] |lacks its default",
        *(*FILLED, ADD_CHECK, SET_NOT_NULL),
        fence_before_work=False,
    ),
    *broken(
        "⚠ chunk's run",
        "a cancelled job's chunk",
        "condition [13] ",
        CREATE_INDEX,
        CREATE_PARTIAL,
        ADD_REQUIRED,
        chunk_check=False,
    ),
    *broken(
        "V3 own row",
        "entry of a stale image",
        "condition 5 ",
        *(CREATE_INDEX, changed(PARTIAL, domain=A2)),
        own_row=False,
    ),
    *broken(
        "⚠ write-only update",
        "missing pair not written",
        f"condition [24] |{MISREAD}",
        CREATE_INDEX,
        CREATE_PARTIAL,
        ADD_REQUIRED,
        write_missing=False,
        backfill_newer=False,
        verify=False,
    ),
    *broken(
        "⚠ findings confirmed",
        "believed as images show them",
        "as they should be",
        *(change.by_an_earlier_release() for change in (ADD_CHECK, SET_NOT_NULL)),
        confirm=False,
    ),
    *broken(
        "images",
        "a fill by key is not known to their readers",
        MISREAD,
        *(ADD_REQUIRED, ADD_DEFAULTED, *AT_ONCE, *COMPUTED_ONES),
        completed=False,
    ),
    *broken(
        "images",
        "newer ones are taken for older ones",
        "is None, a reader of images sees 7",
        *(ADD_DEFAULTED, DEFAULTED_AT_ONCE),
        older_alone=False,
    ),
    *broken(
        "images",
        "newer ones are computed, as older ones are",
        "is None, a reader of images sees 0",
        RETYPE,
        older_alone=False,
    ),
    *broken(
        "images",
        "what a value was computed from goes with its column",
        MISREAD,
        RETYPE,
        image_kept=False,
    ),
    *broken(
        "at once",
        "no default of the store's own",
        "lacks its default|condition 2 ",
        *AT_ONCE,
        given_at_once=False,
    ),
    *broken(
        "at once",
        "a row of who knows no such column stays without",
        "lacks its default|condition 2 |sees 7",
        *AT_ONCE,
        new_completed=False,
    ),
    *broken(
        "verification",
        "left out",
        "condition [26] ",
        *(CREATE_UNIQUE, CREATE_UNIQUE_PARTIAL, CREATE_DIVIDING, ADD_CHECK, SET_NOT_NULL),
        verify=False,
    ),
]


IN_SLICES = [
    *broken("slices", "one is left out", "condition [26] ", *CONSTRAINED, slices_cover=False),
    *broken(
        "slices",
        "begun before the fence",
        "condition [26] ",
        *CONSTRAINED,
        fence_before_work=False,
    ),
]


@pytest.mark.parametrize(
    "case", IN_SLICES, ids=lambda c: f"{'_'.join(c.off)} {title(c.change)}".replace(" ", "_")
)
def test_a_broken_rule_of_slices_is_found(case: Broken, model_line: AddLine) -> None:
    model = Model(case.change, rules=replace(EVERY_RULE, **case.off), sliced=True)
    report = explore(model.starts(), model.successors, model.invariant, states_max=STATES_MAX)
    model_line(ModelLine.of(f"{case.rule}: {title(case.change)}", case.words, report))
    found(model, report, case.harm)


@pytest.mark.parametrize(
    "case",
    every_third(BROKEN, lambda c: f"{'_'.join(c.off)} {title(c.change)}".replace(" ", "_")),
)
def test_a_broken_rule_is_found(case: Broken, model_line: AddLine) -> None:
    """A job that verification refutes is stopped: the harm has to come all the same. Versions are
    mixed on an empty table: then it is their writers who do the harm."""
    model = Model(case.change, rules=replace(EVERY_RULE, **case.off))
    mixed = {"fence", "drain"} & case.off.keys()
    starts = model.starts()[: 1 if mixed else None]
    report = explore(starts, model.successors, stopped_in_time(model), states_max=STATES_MAX)
    model_line(ModelLine.of(f"{case.rule}: {title(case.change)}", case.words, report))
    found(model, report, case.harm)


# ------------------------------------------------------------------ what verification is worth


def stopped_in_time(model: Model) -> Callable[[World], str | None]:
    """The model's invariant without its verdict on verification: that job is stopped in time."""

    def invariant(world: World) -> str | None:
        harm = model.invariant(world)
        return None if harm is not None and "is refuted" in harm else harm

    return invariant


BACKFILLED = [CREATE_INDEX, ADD_REQUIRED]


@pytest.mark.parametrize("change", BACKFILLED, ids=title)
def test_a_straggler_after_the_fence_is_seen_by_queries(
    change: Change, model_line: AddLine
) -> None:
    """D5 with harm that a query sees: the element is public and lacks what the straggler left
    out. Verification does not help: the straggler can come after it."""
    model = Model(change, rules=replace(EVERY_RULE, fence=False), public_only=True, rows=1)
    starts = model.starts()[1:]  # begins with its row there, so only a write can take the pair
    report = explore(starts, model.successors, stopped_in_time(model), states_max=STATES_MAX)
    model_line(ModelLine.of(f"D5 fence: {title(change)}", "seen by queries", report))
    found(model, report, "condition [1245] ")
    assert report.violation is not None
    assert any("elements and rows agree" in words for words, _ in report.violation.steps)


@pytest.mark.parametrize("change", [*BACKFILLED, ADD_DEFAULTED], ids=title)
@pytest.mark.parametrize(
    ("off", "stopped"),
    [
        ({"write_missing": False, "backfill_newer": False}, True),
        ({"fence_before_work": False}, False),
    ],
    ids=["write_missing", "fence_before_work"],
)
def test_what_verification_can_and_cannot_stop(
    off: dict[str, bool], stopped: bool, change: Change, model_line: AddLine
) -> None:
    """A pair that a rule forgot is seen before public, the job ends there and no query meets it.
    Where the fence is late, a straggler comes after verification too: it proves nothing then. Nor
    does it see images: a row that a backfill by key has saved is whole, its last image is not."""
    model = Model(change, rules=replace(EVERY_RULE, **off), public_only=True)
    report = explored(model)
    assert report.violation is not None
    assert "is refuted" in report.violation.harm
    invariant: Any = stopped_in_time(model)
    after = explore(model.starts(), model.successors, invariant, states_max=STATES_MAX)
    model_line(ModelLine.of(f"verification: {title(change)}", f"{'+'.join(off)} off", after))
    if stopped and change is not CREATE_INDEX:
        found(model, after, MISREAD)
        return
    assert after.exhausted == stopped
    assert (after.violation is None) == stopped


@pytest.mark.parametrize("change", FILLED, ids=title)
def test_write_missing_and_fill_newer_back_each_other(change: Change, model_line: AddLine) -> None:
    """Either rule alone keeps consistency: a row written under write-only has its pair already, or
    a chunk gives it all the same. Only without both (above) a row stays without. But where a chunk
    fills by key, the pair must be in the image of whoever wrote the row."""
    for off in ({"write_missing": False}, {"backfill_newer": False}):
        model = Model(change, rules=replace(EVERY_RULE, **off))
        report = explored(model)
        model_line(
            ModelLine.of(f"redundant alone: {title(change)}", f"{'+'.join(off)} off", report)
        )
        if "write_missing" in off and change in (ADD_REQUIRED, ADD_DEFAULTED):
            found(model, report, MISREAD)
            continue
        assert report.exhausted
        assert report.violation is None, report.violation.words(model.show)
