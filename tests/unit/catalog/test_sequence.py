"""Goal: a sequence gives each number once, inside of its bounds, in PostgreSQL's words.

Method: blocks of random sizes beside numbers one by one, and options that PostgreSQL takes or not.
"""

from __future__ import annotations

import random

import pytest

from leasehold.catalog.catalog import Catalog
from leasehold.catalog.descriptor import from_wire
from leasehold.catalog.edits import Kind
from leasehold.catalog.sequence import (
    Options,
    Sequence,
    SequencePosition,
    alter_sequence_options,
    continue_position,
    define_sequence,
    first_position,
    move_position,
    position_image,
    read_position,
    sequence_from_wire,
    sequence_to_wire,
    take_numbers,
)
from leasehold.catalog.sequence_ownership import derive_sequence_name
from leasehold.model.errors import InvalidArgument, OutOfRange, Refused, SequenceExhausted
from leasehold.model.records.requests import Operation
from leasehold.schema_change.plan.plan import NO_CONTEXT
from leasehold.schema_change.plan.statement_batch import StatementBatch
from leasehold.sql.ddl.schema_statements import parse_statements

RUNS = 300


def one_by_one(sequence: Sequence) -> list[int]:
    """All that it has to give."""
    step = sequence.increment
    end = sequence.most + 1 if step > 0 else sequence.least - 1
    return list(range(sequence.start, end, step))


def random_sequence(rng: random.Random) -> Sequence:
    least = rng.randint(-50, 50)
    most = least + rng.randint(1, 100)
    step = rng.choice((-7, -1, 1, 1, 1, 2, 10, 1_000))
    return Sequence("smallint", rng.randint(least, most), step, least, most)


@pytest.mark.parametrize("seed", range(RUNS))
def test_blocks_are_the_numbers_one_after_the_other(seed: int) -> None:
    rng = random.Random(seed)
    sequence = random_sequence(rng)
    state, given = first_position(sequence, 7), list[int]()

    def more() -> None:
        nonlocal state
        first, got, state = take_numbers(sequence, "s", state, rng.randint(1, 12))
        given.extend(first + sequence.increment * n for n in range(got))
        assert read_position(position_image(state)) == state
        assert state.epoch == 7

    left = len(one_by_one(sequence))
    while len(given) < left:
        more()
    with pytest.raises(SequenceExhausted) as error:
        more()
    assert given == one_by_one(sequence)
    word = "maximum" if sequence.increment > 0 else "minimum"
    assert f"reached {word} value of sequence 's'" in error.value.message
    assert error.value.sqlstate == "2200H"


@pytest.mark.parametrize("seed", range(RUNS))
def test_one_that_cycles_begins_again_at_its_other_bound(seed: int) -> None:
    rng = random.Random(seed)
    sequence = random_sequence(rng)._replace(cycles=True)
    around = sequence._replace(start=sequence.least if sequence.increment > 0 else sequence.most)
    expected = one_by_one(sequence) + 3 * one_by_one(around)
    state, given = first_position(sequence, 7), list[int]()
    while len(given) < len(expected):
        first, got, state = take_numbers(sequence, "s", state, rng.randint(1, 12))
        given.extend(first + sequence.increment * n for n in range(got))
    assert given[: len(expected)] == expected


@pytest.mark.parametrize(
    ("options", "made"),
    [
        (Options(increment=3), ("bigint", 1, 3, 1, 2**63 - 1)),
        (Options(type="smallint"), ("smallint", 1, 1, 1, 2**15 - 1)),
        (Options(most=9, start=9), ("bigint", 9, 1, 1, 9)),
        (
            Options(increment=-1, no_most=True, start=-1, no_least=True),
            ("bigint", -1, -1, -(2**63), -1),
        ),
    ],
)
def test_what_alter_does_not_say_stays(options: Options, made: tuple[object, ...]) -> None:
    """A bound that was its type's becomes the other type's, as in PostgreSQL."""
    assert alter_sequence_options(define_sequence(Options()), options)[:5] == made


def test_where_an_altered_one_goes_on() -> None:
    before = SequencePosition(40, True, 3)
    sequence = alter_sequence_options(define_sequence(Options()), Options(increment=5))
    assert continue_position(sequence, before, 9) == SequencePosition(40, True, 9)
    assert take_numbers(sequence, "s", continue_position(sequence, before, 9), 2).first == 45
    # Numbers that were given beyond the new bound, while its job was under way.
    shorter = alter_sequence_options(define_sequence(Options()), Options(most=30))
    with pytest.raises(SequenceExhausted):
        take_numbers(shorter, "s", continue_position(shorter, before, 9), 1)
    anew = alter_sequence_options(
        define_sequence(Options()), Options(increment=2, restarts=True, restart=7)
    )
    assert continue_position(anew, before, 9) == SequencePosition(7, False, 9)
    assert sequence_from_wire(sequence_to_wire(anew)) == anew


def test_an_altered_one_may_not_begin_outside() -> None:
    with pytest.raises(InvalidArgument, match="RESTART value"):
        alter_sequence_options(define_sequence(Options(most=9)), Options(restarts=True, restart=99))


def test_what_does_not_cycle_is_written_as_it_always_was() -> None:
    plain = define_sequence(Options())
    assert sequence_to_wire(plain) == ["bigint", 1, 1, 1, (1 << 63) - 1, 1]
    for sequence in (plain, plain._replace(cycles=True)):
        assert sequence_from_wire(sequence_to_wire(sequence)) == sequence


@pytest.mark.parametrize("called", [True, False])
def test_a_sequence_that_is_set_goes_on_from_there(called: bool) -> None:
    sequence = define_sequence(Options(increment=5))
    state = move_position(sequence, "s", 100, called, 9)
    assert state == SequencePosition(100, called, 9)
    assert take_numbers(sequence, "s", state, 2).first == (105 if called else 100)


def test_it_is_set_inside_of_its_bounds() -> None:
    sequence = define_sequence(Options(most=10))
    for value in (0, 11):
        with pytest.raises(OutOfRange, match="out of bounds"):
            move_position(sequence, "s", value, True, 1)


@pytest.mark.parametrize(
    ("options", "kind", "made"),
    [
        (Options(), "integer", (1, 1, 1, 2**31 - 1)),
        (Options(), "bigint", (1, 1, 1, 2**63 - 1)),
        (Options(increment=-1), "smallint", (-1, -1, -(2**15), -1)),
        (Options(start=5, increment=2, least=3, most=9), "bigint", (5, 2, 3, 9)),
        (Options(type="smallint"), "bigint", (1, 1, 1, 2**15 - 1)),
    ],
)
def test_what_is_not_said_is_as_in_postgresql(
    options: Options, kind: str, made: tuple[int, ...]
) -> None:
    assert define_sequence(options, kind)[1:5] == made


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (Options(increment=0), "INCREMENT must not be zero"),
        (Options(least=5, most=5), "MINVALUE (5) must be less than MAXVALUE (5)"),
        (Options(start=0), "START value (0) cannot be less than MINVALUE (1)"),
        (Options(start=11, most=10), "START value (11) cannot be greater than MAXVALUE (10)"),
        (Options(cache=0), "CACHE (0) must be greater than zero"),
        (Options(type="smallint", most=40_000), "out of range for sequence data type smallint"),
    ],
)
def test_options_that_contradict_each_other(options: Options, words: str) -> None:
    with pytest.raises(InvalidArgument) as error:
        define_sequence(options)
    assert words in error.value.message


def test_names_are_derived_as_postgresql_derives_them() -> None:
    assert derive_sequence_name("t", "id", set()) == "t_id_seq"
    assert derive_sequence_name("t", "id", {"t_id_seq", "t_id_seq1"}) == "t_id_seq2"
    long = derive_sequence_name("t" * 63, "c" * 63, set())
    assert long == f"{'t' * 29}_{'c' * 29}_seq"
    assert len(derive_sequence_name("t" * 63, "id", set())) == 63


# ------------------------------------------------------------------ statements


def script(text: str) -> StatementBatch:
    made = StatementBatch.on(Catalog())
    for statement, sql in parse_statements(text):
        assert not isinstance(statement, str)
        made.take(statement, sql, b"", NO_CONTEXT, lambda _: -1)  # type: ignore[arg-type]
    return made


def names(made: StatementBatch) -> set[str]:
    return {table.name for table in made.made.values()}


def test_a_table_comes_with_its_sequences_and_goes_with_them() -> None:
    made = script("create table t (a serial, b bigint generated always as identity, c int)")
    assert names(made) == {"t", "t_a_seq", "t_b_seq"}
    assert [o.values for o in made.opening] == [{"set": 1, "called": False}] * 2
    for table in made.made.values():
        assert from_wire(table.to_wire()) == table
    assert names(script("create table t (a serial); drop table t")) == set()
    assert names(
        script("create table t (a int generated by default as identity (sequence name n start 5))")
    ) == {"t", "n"}


def test_a_column_that_is_added_in_the_same_request_brings_its_sequence() -> None:
    made = script("create table t (b int); alter table t add a serial, add c smallserial")
    assert names(made) == {"t", "t_a_seq", "t_c_seq"}
    assert [o.table for o in made.opening] == ["t_a_seq", "t_c_seq"]
    table = made.catalog.resolve("t")
    drawn = [made.catalog.newest(c.draws_from).name for c in table.columns if c.draws_from]
    assert drawn == ["t_a_seq", "t_c_seq"]
    assert not made.jobs
    gone = "create table t (b int); alter table t add a serial; drop table t"
    assert names(script(gone)) == set()


def test_a_name_that_is_taken_is_numbered() -> None:
    made = script("create sequence t_a_seq; create table t (a serial)")
    assert names(made) == {"t", "t_a_seq", "t_a_seq1"}


def test_restarts_open_the_request() -> None:
    made = script("create sequence s start 5; alter sequence s restart with 9")
    assert [o.values["set"] for o in made.opening] == [9]
    made = script("create table t (a serial); truncate t restart identity")
    assert [o.values["set"] for o in made.opening] == [1]


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("create sequence s; create sequence s", "42P07"),
        ("create sequence s; create table s (a int)", "42P07"),
        ("create table t (a serial); drop sequence t_a_seq", "2BP01"),
        ("create table t (a int generated always as identity); drop sequence t_a_seq", "2BP01"),
        ("create sequence s; create table t (a int default nextval('s')); drop sequence s",
         "2BP01"),
        ("create table t (a int default nextval('s'))", "42P01"),
        ("create table t (a int); create table u (a int default nextval('t'))", "42809"),
        ("create sequence s; drop table s", "42809"),
        ("create table t (a int); drop sequence t", "42809"),
        ("create sequence s; truncate s", "42809"),
        ("create sequence s; alter table s add b int", "42809"),
        ("create sequence s; create index on s (log_cnt)", "42809"),
        ("create sequence s; create table t (a bigint references s)", "42809"),
        ("create sequence s maxvalue 5; alter sequence s restart 6", "22023"),
        ("drop sequence s", "42P01"),
        ("alter sequence s restart", "42P01"),
        ("create table t (a int generated always as identity); alter table t alter a drop default",
         "42601"),
        ("create table t (b int); alter table t add a serial default 1", "42601"),
        ("create table t (b int); alter table t add a text generated always as identity", "22023"),
        ("create table t (b int); alter table t add a int default nextval('t')", "42809"),
        ("create table t (b int); alter table t add a serial, add c serial; drop sequence t_c_seq",
         "2BP01"),
    ],
)  # fmt: skip
def test_refused(text: str, code: str) -> None:
    with pytest.raises(Refused) as error:
        script(text)
    assert error.value.sqlstate == code


def state(text: str) -> Catalog:
    """As the log has it once `text` is committed."""
    catalog = Catalog()
    for write in script(text).writes:
        catalog.apply(write, 0, 0)
    return catalog


def said_of(text: str, catalog: Catalog) -> tuple[tuple[Operation, ...], list[list[object]]]:
    """What a statement asks of rows, and the options that its job's steps put."""
    made = StatementBatch.on(catalog)
    for statement, sql in parse_statements(text):
        made.take(statement, sql, b"", NO_CONTEXT, lambda _: -1)  # type: ignore[arg-type]
    edits = [e for job in made.jobs.values() for step in job.steps for e in step.edits]
    bodies = (edit.after for edit in edits if edit.kind is Kind.TABLE)
    return made.opening, [body["sequence"] for body in bodies if body is not None]


TABLE = "create sequence s; create table t (k int primary key, n int generated always as identity)"


@pytest.mark.parametrize(
    ("text", "asked", "put"),
    [
        ("alter sequence s increment 5", [], [["bigint", 1, 5, 1, 2**63 - 1, 1]]),
        ("alter sequence s maxvalue 9", [{"within": (1, 9)}], [["bigint", 1, 1, 1, 9, 1]]),
        (
            "alter sequence s maxvalue 9 restart with 4",
            [],
            [["bigint", 1, 1, 1, 9, 1, False, 4]],
        ),
        ("alter sequence s start 1 restart", [{"set": 1, "called": False}], []),
        ("alter sequence s no cycle", [], []),
        ("alter sequence if exists no increment 5", [], []),
        (
            "alter table t alter n set increment 3 restart with 7, alter n set cycle",
            [],
            [["integer", 1, 3, 1, 2**31 - 1, 1, True, 7]],
        ),
    ],
)
def test_what_is_altered_of_one_that_is_there(
    text: str, asked: list[object], put: list[object]
) -> None:
    opening, bodies = said_of(text, state(TABLE))
    assert ([o.values for o in opening], bodies) == (asked, put)


def test_one_of_the_same_request_is_made_like_that() -> None:
    made = script("create sequence s; alter sequence s increment 5 maxvalue 99 restart 7")
    (sequence,) = made.made.values()
    assert sequence.sequence == Sequence("bigint", 1, 5, 1, 99)
    assert [o.values for o in made.opening] == [{"set": 7, "called": False}]
    with pytest.raises(InvalidArgument, match="RESTART value"):
        script("create sequence s; alter sequence s minvalue 5 start 6")
