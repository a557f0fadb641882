"""What to do about an error that ends a command, in one table: of the error's kind, else of its
SQLSTATE, which refusals of the master and of a node have alone."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from leasehold.model.errors import (
    BusUnavailable,
    ConfigurationError,
    LeaseholdError,
    LedgerUnavailable,
    NoMaster,
    NotAuthentic,
    NotCoherent,
    OutcomeUnknown,
    RegistryUnavailable,
    UnknownJob,
    UnknownRole,
)

NO_TOPIC: Final = "has no topic"
"""In the words of BusUnavailable: Kafka is there, and knows nothing of the database."""
MISSING_TOPIC: Final = (
    "is LEASEHOLD_DATABASE the database's name? `leasehold topics` creates the topics of a new one"
)
SETTING: Final = "LEASEHOLD_"
UNKNOWN_JOB: Final = "leasehold jobs --all lists them"
BY_KIND: Final[Mapping[type[LeaseholdError], str]] = {
    BusUnavailable: "Is Kafka running (make up), and is LEASEHOLD_KAFKA right?",
    LedgerUnavailable: "Is Redis running (make up), and is LEASEHOLD_REDIS right?",
    NoMaster: "leasehold status shows the nodes; leasehold master starts one that may be it",
    NotCoherent: "leasehold status shows how far each node is; ask again, or ask another one",
    OutcomeUnknown: "it may have been done: look at jobs, or the rows, before you repeat it",
    RegistryUnavailable: "is the schema registry running, and is its address right"
    " (LEASEHOLD_REGISTRY)?",
    NotAuthentic: "whose key signs the request? LEASEHOLD_REQUEST_ROLE and the file of its key;"
    " leasehold role prints it",
    UnknownJob: UNKNOWN_JOB,
    UnknownRole: "leasehold sql -c 'SELECT rolname FROM pg_roles' lists them",
    ConfigurationError: "docs/reference/settings.md lists the settings; leasehold init writes a"
    " file of them",
}
BY_CODE: Final[Mapping[str, str]] = {
    "08P01": "docs/reference/change-requests.md has the form of a request",
    "0A000": "docs/reference/ddl.md and docs/reference/sql.md say what there is instead",
    "28000": "is LEASEHOLD_SQL_USER a user there, and may it log in? leasehold user list",
    "28P01": "is the password right? --password-file, or LEASEHOLD_SQL_PASSWORD_FILE, names it",
    "3D000": "is LEASEHOLD_DATABASE (or -d) the name of the database that this node serves?",
    "40001": "send it again: what it rests on has changed meanwhile",
    "42501": "ask the owner, or a superuser, for the privilege (GRANT …)",
    "42601": "docs/reference/ddl.md and docs/reference/sql.md have the statements that there are",
    "42703": "leasehold versions TABLE lists its columns",
    "42P01": "leasehold versions lists the tables",
    "42P07": "leasehold versions lists what is there; IF NOT EXISTS leaves it alone",
    "53100": "leasehold doctor shows what disks have left;"
    " docs/how-to/runbooks/disk-nearly-full.md",
    "53200": "ask for less at once, or let statements hold more (LEASEHOLD_SQL_MEMORY_MB)",
    "53300": "wait, or let more in (LEASEHOLD_SQL_CONNECTIONS_MAX)",
    "54000": "docs/reference/limits.md has the limits: send less at once",
    "54001": "docs/reference/limits.md has the limits: say it in several statements",
    "55006": "leasehold jobs watch shows what goes on; send it again when that has ended",
    "57014": "leasehold jobs shows whether what was begun goes on",
    "57P03": "leasehold status shows the nodes; send it again when one is ready",
    "72000": "ask for a newer time, or let more be kept (LEASEHOLD_ROW_HISTORY_MS)",
}


def hint_for(error: LeaseholdError) -> str:
    """Return what to do about an error, "" where nobody can say: its own hint first."""
    own = error.detail.get("hint")
    if own:
        return str(own)
    if isinstance(error, BusUnavailable) and NO_TOPIC in error.message:
        return MISSING_TOPIC
    if isinstance(error, ConfigurationError) and SETTING not in error.message:
        return ""  # an argument, or a file
    for kind, hint in BY_KIND.items():
        if isinstance(error, kind):
            return hint
    return hint_of_code(error.sqlstate)


def hint_of_code(code: str) -> str:
    """Return what to do about a refusal of this SQLSTATE, "" where nobody can say."""
    return BY_CODE.get(code, "")
