"""What commands print with `--json`, as JSON Schemas: names and types that programs may rely on.

Names are added and never changed, so a schema says what is there at least. PURE.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from leasehold.cli.json_forms_of_actions import ACTION_FORMS, OUTCOME
from leasehold.cli.json_schema import (
    ANYTHING,
    BOOLEAN,
    INTEGER,
    NUMBER,
    TEXT,
    Form,
    any_of,
    list_of,
    map_of,
    maybe,
    record,
    with_field,
)

ERROR: Final = {
    **record(error=TEXT, code=TEXT),
    "properties": {"error": TEXT, "code": TEXT, "hint": TEXT},
}
"""Of any command that ends with an error; `hint` where there is one."""

_ELEMENTS: Final = list_of(record(id=INTEGER, name=TEXT, state=TEXT, definition=TEXT))
_TABLE: Final = record(
    table_id=INTEGER,
    table=TEXT,
    version=INTEGER,
    lsn=INTEGER,
    commit_us=INTEGER,
    state=TEXT,
    former_name=maybe(TEXT),
    primary_key=list_of(TEXT),
    columns=_ELEMENTS,
    indexes=_ELEMENTS,
    checks=_ELEMENTS,
    locks=_ELEMENTS,
    foreign_keys=_ELEMENTS,
    rows_about=INTEGER,
)
_JOB: Final = record(
    job=INTEGER,
    sql=TEXT,
    asked_by=TEXT,
    table=TEXT,
    table_id=INTEGER,
    kind=TEXT,
    subject=TEXT,
    status=TEXT,
    phase=TEXT,
    step=INTEGER,
    steps=INTEGER,
    to=TEXT,
    point_of_no_return=INTEGER,
    can_cancel=BOOLEAN,
    postponed=BOOLEAN,
    doing=TEXT,
    phase_ms=maybe(INTEGER),
    waits_for=list_of(TEXT),
    spark_fails=TEXT,
    blockers=list_of(map_of(ANYTHING)),
    fraction=NUMBER,
    rows=INTEGER,
    rows_applied=INTEGER,
    rows_total=INTEGER,
    rows_per_second=NUMBER,
    eta_s=maybe(NUMBER),
    ends_in_s=maybe(NUMBER),
    attempts=INTEGER,
    settings=map_of(INTEGER),
    error=TEXT,
    findings=list_of(map_of(ANYTHING)),
    dismissed=BOOLEAN,
    created_us=INTEGER,
    ended_us=maybe(INTEGER),
    age_ms=INTEGER,
    changed_us=INTEGER,
)
_LEASES: Final = list_of(
    record(
        table_id=INTEGER,
        table=TEXT,
        current=INTEGER,
        min_version=INTEGER,
        versions=list_of(
            record(
                version=INTEGER,
                leases=INTEGER,
                old=BOOLEAN,
                agents=list_of(TEXT),
                sessions=list_of(INTEGER),
                holders=list_of(map_of(ANYTHING)),
            )
        ),
    )
)
_LOG: Final = record(
    offset=INTEGER,
    lsn=INTEGER,
    epoch=INTEGER,
    master=TEXT,
    commit_us=INTEGER,
    master_silent_ms=maybe(INTEGER),
    answered_through=INTEGER,
    time_us=INTEGER,
    id_horizon_us=INTEGER,
    master_clock_us=maybe(INTEGER),
    ahead_ms=maybe(INTEGER),
)
_RATES: Final = record(
    committed_per_second=NUMBER,
    refused_per_second=NUMBER,
    dead_lettered_per_second=NUMBER,
    committed=INTEGER,
    refused=INTEGER,
    dead_lettered=INTEGER,
    last_minute=list_of(list_of(INTEGER)),
)
_NODE: Final = record(
    node=TEXT,
    role=TEXT,
    coherency=TEXT,
    for_ms=INTEGER,
    offset=INTEGER,
    lsn=INTEGER,
    epoch=INTEGER,
    lag_records=INTEGER,
    lag_lsn=INTEGER,
    age_ms=INTEGER,
    serves=ANYTHING,
    open=TEXT,
    holds=TEXT,
    foreign_records=INTEGER,
)
_LEDGER: Final = record(
    state=TEXT,
    run_id=TEXT,
    epoch=INTEGER,
    age_ms=maybe(INTEGER),
    sessions=list_of(
        record(
            session=INTEGER,
            agent=TEXT,
            renewals=INTEGER,
            leases=INTEGER,
            expiring=BOOLEAN,
            renewed_ms=maybe(INTEGER),
        )
    ),
)
_SPARK: Final = maybe(record(heard_ms=INTEGER, silent=BOOLEAN, trouble=TEXT))
_CHANGEFEED: Final = maybe(
    record(
        heard_ms=INTEGER,
        silent=BOOLEAN,
        offset=INTEGER,
        lsn=INTEGER,
        lag_records=INTEGER,
        feeds=list_of(record(table=TEXT, status=TEXT, words=TEXT)),
    )
)
ELEMENT_CHANGE: Final = record(
    id=INTEGER,
    kind=TEXT,
    name=TEXT,
    former_name=maybe(TEXT),
    before=TEXT,
    after=TEXT,
    detail=TEXT,
    was=maybe(TEXT),
)
_VERSION_EVENT: Final = record(
    table=TEXT,
    table_id=INTEGER,
    version=INTEGER,
    lsn=INTEGER,
    commit_us=INTEGER,
    job=INTEGER,
    job_subject=TEXT,
    job_step=INTEGER,
    job_steps=INTEGER,
    changes=list_of(ELEMENT_CHANGE),
    words=list_of(TEXT),
)
_STATUS: Final = record(
    now_us=INTEGER,
    as_of_us=INTEGER,
    gaps=list_of(TEXT),
    unreachable=map_of(TEXT),
    log=_LOG,
    rates=_RATES,
    nodes=list_of(_NODE),
    copies=list_of(map_of(ANYTHING)),
    ledger=_LEDGER,
    spark=_SPARK,
    changefeed=_CHANGEFEED,
    tables=list_of(_TABLE),
    tables_there=INTEGER,
    leases=_LEASES,
    jobs=list_of(_JOB),
    jobs_ended=INTEGER,
    versions=list_of(_VERSION_EVENT),
    checks=list_of(map_of(ANYTHING)),
    dead_letters=INTEGER,
    troubles=list_of(TEXT),
)
_QUEUE: Final = with_field(
    record(offset=INTEGER, decided_through=maybe(INTEGER), waiting=maybe(INTEGER)), "lane", TEXT
)
STATUS: Final = with_field(_STATUS, "lanes", list_of(_QUEUE))
TOP: Final = record(
    database=TEXT,
    now_us=INTEGER,
    gaps=list_of(TEXT),
    unreachable=map_of(TEXT),
    log=_LOG,
    rates=_RATES,
    nodes=list_of(_NODE),
    spark=_SPARK,
    changefeed=_CHANGEFEED,
    ledger=record(state=TEXT, sessions=INTEGER, leases=INTEGER),
    waiting=map_of(maybe(INTEGER)),
    jobs=list_of(_JOB),
    old_versions=list_of(
        record(table=TEXT, version=INTEGER, current=INTEGER, agents=list_of(TEXT))
    ),
    hot_tables=list_of(record(table=TEXT, changes_per_second=NUMBER)),
    troubles=list_of(TEXT),
)
INTAKE: Final = record(
    name=TEXT,
    at_work=BOOLEAN,
    silent_ms=maybe(INTEGER),
    state=map_of(ANYTHING),
    places=list_of(
        record(
            topic=TEXT,
            partition=INTEGER,
            next=INTEGER,
            end=maybe(INTEGER),
            waiting=maybe(INTEGER),
        )
    ),
)
PLAN: Final = record(
    equal=BOOLEAN,
    lsn=INTEGER,
    requests=list_of(
        record(
            table=maybe(TEXT),
            rows_about=maybe(INTEGER),
            seconds_about=maybe(NUMBER),
            statements=list_of(
                record(
                    sql=TEXT,
                    instant=BOOLEAN,
                    backfills_rows=BOOLEAN,
                    looks_at_rows=BOOLEAN,
                    loses=maybe(TEXT),
                    may_fail=maybe(TEXT),
                )
            ),
        )
    ),
    losses=list_of(TEXT),
    notes=list_of(TEXT),
    running_jobs=list_of(record(job=INTEGER, table=TEXT)),
)
REQUEST_DONE: Final = record(
    request=INTEGER, of=INTEGER, state={"enum": ["done", "failed"]}, seconds=NUMBER
)

UPGRADE: Final = record(
    level=INTEGER,
    finalizes=INTEGER,
    processes=list_of(
        record(process=TEXT, role=TEXT, release=TEXT, reads=INTEGER, lacks=list_of(TEXT))
    ),
    blockers=list_of(TEXT),
    enables=list_of(record(number=INTEGER, feature=TEXT, written=TEXT)),
    waits=list_of(TEXT),
    unknown=list_of(TEXT),
    unknown_count=INTEGER,
)
_PLAN_STEP: Final = record(
    step=INTEGER,
    version=INTEGER,
    changes=TEXT,
    waits_for=TEXT,
    rows=INTEGER,
    point_of_no_return=BOOLEAN,
    seconds=NUMBER,
)
"""Of `ddl --explain`; rows and seconds are -1 where nobody knows."""
_READERS: Final = record(
    feeds=list_of(record(feed=TEXT, column=TEXT, words=TEXT, breaks=BOOLEAN)),
    registry=list_of(
        record(
            feed=TEXT,
            subject=TEXT,
            compatible={"type": ["boolean", "null"]},
            reasons=list_of(TEXT),
        )
    ),
)
_OF_JOB: Final = with_field(with_field(OUTCOME, "job", INTEGER), "action", TEXT)
_ON_JOBS: Final = ("pause", "resume", "cancel", "postpone", "complete", "dismiss", "set")

FORMS: Final[Mapping[str, Form]] = {
    "status": Form(STATUS),
    "doctor": Form(
        record(
            database=TEXT,
            release=TEXT,
            counts=map_of(INTEGER),
            findings=list_of(
                record(
                    check=TEXT,
                    looks_at=TEXT,
                    verdict={"enum": ["ok", "could not look", "warn", "fail"]},
                    words=TEXT,
                    to_do=TEXT,
                )
            ),
        )
    ),
    "top": Form(TOP, each_line=True),
    "upgrade": Form(UPGRADE),
    "upgrade finalize": Form(OUTCOME),
    "versions": Form(any_of(_TABLE, _VERSION_EVENT), each_line=True),
    "versions diff": Form(
        with_field(
            record(table=TEXT, to=INTEGER, words=list_of(TEXT), changes=list_of(ELEMENT_CHANGE)),
            "from",
            INTEGER,
        )
    ),
    "versions history": Form(_VERSION_EVENT, each_line=True),
    "intake": Form(list_of(INTAKE)),
    "leases": Form(record(ledger=_LEDGER, leases=_LEASES)),
    "jobs": Form(list_of(_JOB)),
    "jobs watch": Form(_JOB, each_line=True),
    **{f"jobs {action}": Form(_OF_JOB) for action in _ON_JOBS},
    "ddl": Form(
        any_of(
            _JOB,
            record(lsn=INTEGER, answer=ANYTHING),
            list_of(_PLAN_STEP),
            _READERS,
        ),
        each_line=True,
    ),
    "schema diff": Form(PLAN),
    "schema apply": Form(any_of(PLAN, REQUEST_DONE, ERROR), each_line=True),
    **ACTION_FORMS,
}
"""By command, and action; an action without one prints what its command does."""
