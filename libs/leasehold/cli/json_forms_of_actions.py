"""What commands that do something print with `--json`, as JSON Schemas. PURE."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

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

OUTCOME: Final = record(
    attempt=INTEGER,
    lsn=INTEGER,
    rows_affected=INTEGER,
    decided_us=INTEGER,
    final=BOOLEAN,
    code=TEXT,
    message=TEXT,
    detail=map_of(ANYTHING),
    dead_lettered=BOOLEAN,
    answer=ANYTHING,
)
"""What became of the one request of a command; refused where `lsn` is 0."""
_CHECKED: Final = record(
    table=TEXT,
    subject=TEXT,
    node=TEXT,
    table_id=INTEGER,
    version=INTEGER,
    offset=INTEGER,
    lsn=INTEGER,
    rows=INTEGER,
    entries=map_of(INTEGER),
    checksum=TEXT,
    findings_total=INTEGER,
    findings=list_of(list_of(ANYTHING)),
    took_ms=INTEGER,
    error=TEXT,
    repaired=maybe(INTEGER),
)
_CHECK: Final = {
    **record(reports=list_of(_CHECKED), troubles=list_of(TEXT)),
    "properties": {
        "reports": list_of(_CHECKED),
        "troubles": list_of(TEXT),
        "repaired": map_of(INTEGER),
    },
}
"""`repaired`, by node, with `--repair`."""
_SLICED: Final = record(
    slices=INTEGER,
    nodes=list_of(
        record(node=TEXT, rows=INTEGER, entries=INTEGER, findings_total=INTEGER, took_ms=INTEGER)
    ),
    findings=list_of(record(node=TEXT, finding=list_of(ANYTHING))),
    troubles=list_of(TEXT),
)
_LETTER: Final = record(
    offset=INTEGER,
    id=TEXT,
    attempt=INTEGER,
    code=TEXT,
    message=TEXT,
    detail=map_of(ANYTHING),
    decided_us=INTEGER,
    lane=TEXT,
    lane_offset=INTEGER,
    content_type=TEXT,
    request=ANYTHING,
    asked_by=TEXT,
)
_FEED: Final = record(
    format=INTEGER,
    order=TEXT,
    definition=record(
        table=TEXT,
        columns=list_of(TEXT),
        where=TEXT,
        schemas=BOOLEAN,
        decimals=TEXT,
        tombstones=BOOLEAN,
        transactions=BOOLEAN,
        snapshot=BOOLEAN,
        partitions=INTEGER,
        kept_hours=INTEGER,
    ),
    topic=TEXT,
    table_id=INTEGER,
    status=TEXT,
    words=TEXT,
    since_lsn=INTEGER,
    columns=list_of(list_of(ANYTHING)),
    where=TEXT,
    mentioned=list_of(list_of(ANYTHING)),
    snapshot=maybe(record(place=TEXT, rows=INTEGER, on_demand=BOOLEAN)),
)
"""Also `held`, of one that is; `encoding` and `compatibility` of the definition where they are
others than JSON and the registry's own."""
_PLACE: Final = record(offset=INTEGER, lsn=INTEGER, time_us=INTEGER)
_BACKUP: Final = record(
    id=TEXT,
    kind=TEXT,
    database=TEXT,
    parent=maybe(TEXT),
    root=TEXT,
    source=TEXT,
    made_us=INTEGER,
    begin=_PLACE,
    end=_PLACE,
    bytes=INTEGER,
    records=INTEGER,
    encrypted=BOOLEAN,
)
_RESTORED: Final = record(
    database=TEXT,
    backups=list_of(TEXT),
    lsn=INTEGER,
    time_us=INTEGER,
    tables=list_of(record(table_id=INTEGER, name=TEXT, rows=INTEGER, checksum=TEXT)),
    published_rows=INTEGER,
    stores=list_of(TEXT),
)
_RIGHTS: Final = list_of(
    record(principal=TEXT, resource=TEXT, name=TEXT, prefixed=BOOLEAN, operation=TEXT)
)
_IMPORT_PLAN: Final = record(
    tables=list_of(
        record(
            table=TEXT,
            rows_about=INTEGER,
            key=list_of(TEXT),
            statements=list_of(TEXT),
            then=map_of(ANYTHING),
            cannot_follow=ANYTHING,
        )
    ),
    sequences=list_of(TEXT),
    findings=list_of(record(kind=TEXT, what=TEXT, words=TEXT)),
)
_IMPORT_END: Final = with_field(
    record(
        rows=INTEGER,
        rows_per_second=INTEGER,
        equal={"type": ["boolean", "null"]},
        tables=list_of(
            record(
                table=TEXT,
                source_rows=INTEGER,
                target_rows=INTEGER,
                source_checksum=TEXT,
                target_checksum=TEXT,
                differences=list_of(record(key=TEXT, words=TEXT)),
                equal=BOOLEAN,
            )
        ),
    ),
    "import",
    TEXT,
)
"""`equal` is null where nothing was compared."""
_AUDITED: Final = {
    **record(time=TEXT, node=TEXT, kind=TEXT, outcome=TEXT),
    "properties": {
        **dict.fromkeys(("time", "node", "kind", "outcome", "user", "role", "address"), TEXT),
        "subject": TEXT,
        "words": TEXT,
        "times": INTEGER,
    },
}

ACTION_FORMS: Final[Mapping[str, Form]] = {
    "submit": Form(
        record(
            submitted=INTEGER,
            committed=INTEGER,
            refused=INTEGER,
            dead_lettered=INTEGER,
            unknown=INTEGER,
            malformed=INTEGER,
            seconds=NUMBER,
            troubles=list_of(record(place=TEXT, id=TEXT, code=TEXT, message=TEXT)),
            troubles_by_code=map_of(INTEGER),
        )
    ),
    "check": Form(any_of(_CHECK, _SLICED)),
    "clock": Form(
        record(
            time_us=INTEGER,
            id_horizon_us=INTEGER,
            master_clock_us=maybe(INTEGER),
            ahead_ms=maybe(INTEGER),
            commit_us=INTEGER,
            master=TEXT,
            now_us=INTEGER,
            troubles=list_of(TEXT),
        )
    ),
    "clock reset": Form(OUTCOME),
    "dead-letter": Form(list_of(_LETTER)),
    "dead-letter explain": Form(with_field(_LETTER, "advice", TEXT)),
    "dead-letter resubmit": Form(with_field(OUTCOME, "id", TEXT)),
    "sql": Form(map_of(ANYTHING), each_line=True),
    "feed": Form(list_of(_FEED)),
    "feed create": Form(_FEED),
    "feed drop": Form(record(table=TEXT)),
    "feed snapshot": Form(record(tables=list_of(TEXT), stop=BOOLEAN)),
    "import": Form(
        any_of(
            with_field(record(rows=INTEGER, came=INTEGER), "import", TEXT),
            _IMPORT_PLAN,
            _IMPORT_END,
        )
    ),
    "export": Form(list_of(record(name=TEXT, file=TEXT, rows=INTEGER))),
    "backup create": Form(
        record(made=maybe(with_field(_BACKUP, "troubles", list_of(TEXT))), removed=list_of(TEXT))
    ),
    "backup list": Form(
        record(
            backups=list_of(with_field(_BACKUP, "usable", BOOLEAN)),
            unfinished=list_of(record(id=TEXT, objects=list_of(TEXT), why=TEXT)),
        )
    ),
    "backup verify": Form(list_of(record(id=TEXT, trouble=TEXT))),
    "backup restore": Form(any_of(_RESTORED, record(name=TEXT, rows=INTEGER, lsn=INTEGER))),
    "backup prune": Form(record(removed=list_of(TEXT))),
    "user list": Form(list_of(TEXT)),
    "user verifier": Form(record(user=TEXT, verifier=TEXT)),
    "role key": Form(record(role=TEXT, number=TEXT, key=TEXT)),
    "role revoke-key": Form(record(role=TEXT, number=TEXT)),
    "audit": Form(_AUDITED, each_line=True),
    "topics": Form(record(created=list_of(TEXT), existing=list_of(TEXT), drift=list_of(TEXT))),
    "setup-acls": Form(
        record(
            given=_RIGHTS,
            taken=_RIGHTS,
            beyond=_RIGHTS,
            others=list_of(TEXT),
            wider=_RIGHTS,
            redis_users=list_of(TEXT),
            dry_run=BOOLEAN,
        )
    ),
    "init": Form(record(file=TEXT, settings=map_of(TEXT), next=list_of(TEXT))),
    "completion": Form(record(shell=TEXT, script=TEXT)),
}
