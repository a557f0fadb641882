"""Named limits, read from the constants that the code asserts.

Constants are found by name in the sources, wherever they stand: a module may be moved, and nothing
is to be said here again. A name that more than one module declares is written `module.NAME`; a
field of a class of limits or rules `module.Class.field`.
"""

from __future__ import annotations

import re
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Final, NamedTuple

from infra.reference.markdown import amount, table

ROOT: Final = Path(__file__).parents[2]
PARENTS: Final = (ROOT / "libs", ROOT)
"""What stands before a package's name in a path."""
_CONSTANT: Final = re.compile(r"^([A-Z][A-Z0-9_]+)(?:: [^=\n]+)? = ", re.MULTILINE)


class Limit(NamedTuple):
    """What is bounded, the constant that says how, its unit, and what happens beyond it."""

    what: str
    constant: str
    unit: str = ""
    beyond: str = ""


GROUPS: Final[tuple[tuple[str, tuple[Limit, ...]], ...]] = (
    (
        "Transactions and change requests",
        (
            Limit(
                "rows that one transaction changes", "pending_changes.OPERATIONS_MAX", "", "54000"
            ),
            Limit("one commit, unpacked", "LARGE_BYTES_MAX", "bytes", "54000"),
            Limit("one commit, packed", "LARGE_ZIPPED_BYTES_MAX", "bytes", "54000"),
            Limit("one row as it is published", "topics.PUBLISHED_BYTES_MAX", "bytes", "54000"),
            Limit("one request, unpacked", "request_bytes.REQUEST_BYTES_MAX", "bytes", "54000"),
            Limit("one request, packed", "request_bytes.ZIPPED_BYTES_MAX", "bytes", "54000"),
            Limit(
                "words and detail of a refusal",
                "refusals.WORDS_BYTES_MAX",
                "bytes",
                "cut; `detail_cut` says so",
            ),
            Limit("one message of any topic", "topics.MESSAGE_BYTES_MAX", "bytes", "54000"),
            Limit(
                "rows that foreign keys' actions change",
                "referential_actions.ROWS_MAX",
                "",
                "54000",
            ),
            Limit("arguments of an expression of a request", "requests.ARGUMENTS_MAX"),
            Limit("sequence numbers drawn by one transaction", "DRAWN_MAX", "", "54000"),
            Limit("notifications sent by one transaction", "NOTIFICATIONS_MAX", "", "54000"),
            Limit("… their bytes", "NOTIFICATIONS_BYTES_MAX", "bytes", "54000"),
            Limit("bytes of a notification's payload", "PAYLOAD_BYTES_MAX", "", "22023"),
            Limit("replays of an embedded transaction", "REPLAYS_MAX", "", "40001"),
            Limit("attempts of a request by Spark", "retry.ATTEMPTS_MAX", "", "40001"),
            Limit("masters that may end over one request", "LOST_MAX", "", "54001"),
            Limit(
                "processes of the retry that may end over one conflict",
                "attempt_child.ENDED_MAX",
                "",
                "40001, with a dead letter",
            ),
            Limit(
                "work of one row's expressions on the master, of about 10 ns each",
                "ROW_WORK_MAX",
                "units",
                "54001",
            ),
            Limit("… of all of a request's", "REQUEST_WORK_MAX", "units", "54001"),
            Limit("how long an outcome is remembered", "outcomes.OutcomeSettings.horizon_ms", "ms"),
            Limit(
                "requests of one producer without an answer",
                "client.ClientSettings.in_flight_max",
                "",
                "the next one waits",
            ),
            Limit(
                "bytes of requests, or of chunks, that a master has read and not decided",
                "queue_limits.WAITING_BYTES_MAX",
                "bytes",
                "the next ones wait on their topic",
            ),
            Limit(
                "bytes of answers that the broker has not taken",
                "queue_limits.ANSWERS_BYTES_MAX",
                "bytes",
                "requests wait",
            ),
        ),
    ),
    (
        "What a serializable transaction has read",
        (
            Limit("keys of one table", "read_set.KEYS_MAX", "", "the whole table counts"),
            Limit("ranges of one table", "read_set.RANGES_MAX", "", "the whole table counts"),
            Limit(
                "steps of SQLite that look through all ranges of a request; of an index ten each",
                "read_set.LOOKED_STEPS_MAX",
                "",
                "the whole table counts",
            ),
            Limit("values of a list, each a key", "reads.LISTED_MAX"),
            Limit("keys that other tables' rows name", "LOOKED_UP_MAX"),
        ),
    ),
    (
        "SQL",
        (
            Limit("text of a query", "source.TEXT_BYTES_MAX", "bytes", "22003"),
            Limit("text of a schema change", "STATEMENT_BYTES_MAX", "bytes", "22003"),
            Limit(
                "statements of one schema change", "schema_statements.STATEMENTS_MAX", "", "22003"
            ),
            Limit(
                "tables and sequences of one schema change",
                "commands.TABLES_PER_CALL_MAX",
                "",
                "22003",
            ),
            Limit("parameters of a statement", "expressions.PARAMETERS_MAX"),
            Limit("tables joined by one query", "RELATIONS_MAX"),
            Limit("columns of a result", "select.COLUMNS_MAX"),
            Limit("columns of an index", "INDEX_COLUMNS_MAX"),
            Limit("bytes of a name", "NAME_BYTES_MAX", "", "cut, with a notice"),
            Limit("rows of an embedded replica's query()", "queries.ROWS_MAX"),
            Limit("rows of an embedded replica's scan()", "replica.ROWS_MAX"),
            Limit("rows of a query that feeds a write, in memory", "queries.BYTES_MAX", "bytes"),
            Limit("cursors of a session", "CURSORS_MAX", "", "54000"),
            Limit("channels that a session listens to", "CHANNELS_MAX", "", "54000"),
            Limit(
                "notifications that wait for the sessions of a node",
                "notifications.QUEUE_BYTES_MAX",
                "bytes",
                "the session with the most ends (57P01)",
            ),
            Limit("rows that a session keeps in files", "SPOOLED_BYTES_MAX", "bytes", "54000"),
            Limit(
                "temporary tables of a session, by SET leasehold.temp_tables_mb",
                "temporary_tables.BYTES_MAX",
                "bytes",
                "54000",
            ),
            Limit("rows that one statement claims", "CLAIMED_ROWS_MAX", "", "54000"),
            Limit("… that it looks at to find some", "CANDIDATES_MAX", "", "54000"),
            Limit(
                "advisory locks and claimed rows of a database at a time",
                "commands.LOCKS_MAX",
                "",
                "53200",
            ),
            Limit("elements of an array", "arrays.ELEMENTS_MAX", "", "54000"),
            Limit("text on its way through a query", "MADE_CHARACTERS_MAX", "characters", "22001"),
            Limit("regular expression", "regexp_translation.PATTERN_MAX", "characters", "54001"),
            Limit("characters of an array", "arrays.CHARACTERS_MAX", "characters", "54000"),
            Limit("pattern of LIKE", "types.TEXT_BYTES_MAX", "characters", "54001"),
            Limit("template of to_char and its like", "TEMPLATE_MAX", "characters", "54001"),
            Limit(
                "parts of an expression, where SQLite's text says them more than once",
                "walk.COPIES_MAX",
                "",
                "54001",
            ),
            Limit(
                "memory that a statement or a transaction holds (LEASEHOLD_SQL_MEMORY_MB)",
                "environment.ClusterSettings.sql_memory_mb",
                "MB",
                "53200",
            ),
            Limit(
                "memory of all statements of a node (LEASEHOLD_SQL_MEMORY_TOTAL_MB)",
                "environment.ClusterSettings.sql_memory_total_mb",
                "MB",
                "53200",
            ),
            Limit(
                "temporary files of all statements of a node (LEASEHOLD_SQL_TEMP_MB)",
                "environment.ClusterSettings.sql_temp_mb",
                "MB",
                "53100",
            ),
            Limit("savepoints of a transaction at once", "SAVEPOINTS_MAX", "", "54000"),
            Limit(
                "text whose plan is kept for the next one who asks",
                "PLAN_CHARACTERS_MAX",
                "characters",
                "planned each time",
            ),
            Limit("texts of all plans that are kept", "PLANS_CHARACTERS_MAX", "characters"),
            Limit("one text that SQLite joins", "layout.VALUE_BYTES_MAX", "bytes", "54000"),
            Limit(
                "work of one call that nothing can stop, of about 10 ns each",
                "CALL_WORK_MAX",
                "units",
                "54001",
            ),
        ),
    ),
    (
        "Roles",
        (
            Limit("roles", "ROLES_MAX", "", "22003"),
            Limit("memberships", "MEMBERSHIPS_MAX", "", "22003"),
            Limit("entries in a list of privileges", "access.ITEMS_MAX", "", "22003"),
        ),
    ),
    (
        "Values",
        (
            Limit("text or bytea in a row", "types.TEXT_BYTES_MAX", "characters", "22001"),
            Limit("value of a kept expression", "types.TEXT_BYTES_MAX", "characters", "22001"),
            Limit("jsonb, as text", "jsonb.TEXT_CHARACTERS_MAX", "characters", "22001"),
            Limit("levels of jsonb", "jsonb.NESTING_MAX", "", "22003"),
            Limit("precision of numeric(p, s)", "numeric.PRECISION_MAX", "digits"),
            Limit("digits of a numeric before its point", "WHOLE_DIGITS_MAX"),
            Limit("digits of a numeric behind its point", "numeric.SCALE_MAX"),
        ),
    ),
    (
        "The wire",
        (
            Limit("message of a client", "limits.Limits.message_bytes_max", "bytes"),
            Limit("prepared statements of a connection", "limits.Limits.statements_max"),
            Limit(
                "their texts together",
                "limits.Limits.statement_texts_bytes_max",
                "bytes",
                "53400",
            ),
            Limit("portals of a connection", "limits.Limits.portals_max"),
            Limit(
                "their values together, of the memory of all statements",
                "limits.Limits.portal_values_bytes_max",
                "bytes",
                "53400",
            ),
            Limit("line of COPY", "limits.Limits.copy_line_bytes_max", "bytes"),
            Limit("users and addresses whose failures are remembered", "PLACES_MAX"),
            Limit("wait of a try after failed log-ins", "WAIT_S_MAX", "s", "28000"),
        ),
    ),
    (
        "The cluster",
        (
            Limit("sessions of the lease ledger", "SESSIONS_MAX"),
            Limit("leases of one session", "LEASES_PER_SESSION_MAX"),
            Limit("nodes of a database", "NODES_MAX"),
            Limit(
                "requests that wait for a master",
                "intake.WAITING_MAX",
                "",
                "its topic is not read on",
            ),
            Limit("coherency lease", "coherency.CoherencySettings.duration_ms", "ms"),
            Limit(
                "coherency lease while the log is slow",
                "coherency.CoherencySettings.duration_ms_max",
                "ms",
            ),
            Limit(
                "silence after which a standby bids", "election.ElectionSettings.timeout_ms", "ms"
            ),
            Limit(
                "keeping of the log for a copy of a store that was taken or given up",
                "truncation.TruncationSettings.copy_away_ms",
                "ms",
            ),
            Limit(
                "absence after which a node begins from a snapshot",
                "truncation.TruncationSettings.away_ms",
                "ms",
            ),
            Limit("rows that break a constraint, named by a job", "transitions.FINDINGS_MAX"),
            Limit("sessions of the dashboard", "LOGGED_IN_MAX", "", "the oldest ends"),
            Limit("sessions of one user there", "LOGGED_IN_OF_USER_MAX", "", "his oldest one ends"),
            Limit(
                "connections to SQL of the dashboard's users",
                "user_sql.CONNECTIONS_MAX",
                "",
                "the one used longest ago ends",
            ),
            Limit("rows that its page SQL shows", "user_sql.ROWS_MAX", "", "the rest is not read"),
            Limit(
                "entries that one `check --repair` puts right",
                "REPAIRS_MAX",
                "",
                "give the command again",
            ),
        ),
    ),
    (
        "Feeds of tables",
        (
            Limit("feeds of one database", "FEEDS_MAX", "", "refused"),
            Limit("partitions of a feed's topic", "definition.PARTITIONS_MAX", "", "refused"),
            Limit("a condition", "WHERE_CHARACTERS_MAX", "characters", "refused"),
            Limit(
                "one message",
                "table_form.MESSAGE_BYTES_MAX",
                "bytes",
                "long values become `__debezium_unavailable_value`",
            ),
            Limit("rows of a snapshot between what the log brings", "SNAPSHOT_ROWS"),
            Limit(
                "images of rows that wait for one transaction",
                "table_feeds.WAITING_BYTES_MAX",
                "bytes",
                "it is sent, behind a whole record of the log",
            ),
        ),
    ),
)


def limits() -> str:
    """Return one table for each subject. Raises LookupError for a constant that is not there."""
    parts: list[str] = []
    for title, group in GROUPS:
        rows = [(li.what, amount(_value(li.constant), li.unit), li.beyond) for li in group]
        parts.append(f"### {title}\n\n{table(('what', 'at most', 'beyond it'), rows)}")
    return "\n\n".join(parts)


def _value(constant: str) -> float:
    module, _, name = constant.rpartition(".")
    module, _, owner = module.partition(".")
    found = [path for path in _declaring(owner or name) if module in ("", path.stem)]
    if len(found) != 1:
        where = ", ".join(str(path.relative_to(ROOT)) for path in found) or "nowhere"
        raise LookupError(f"limit {constant} is declared {where}: name it anew in limits.py")
    source = import_module(_module_name(found[0]))
    value: float = getattr(getattr(source, owner)(), name) if owner else getattr(source, name)
    return value


@cache
def _declarations() -> dict[str, list[Path]]:
    found: dict[str, list[Path]] = {}
    for path in sorted((ROOT / "libs" / "leasehold").rglob("*.py")):
        text = path.read_text("utf-8")
        names = _CONSTANT.findall(text) + re.findall(r"^class (\w+)", text, re.MULTILINE)
        for name in names:
            found.setdefault(name, []).append(path)
    return found


def _declaring(name: str) -> list[Path]:
    return _declarations().get(name, [])


def _module_name(path: Path) -> str:
    return ".".join(path.relative_to(PARENTS[0]).with_suffix("").parts)
