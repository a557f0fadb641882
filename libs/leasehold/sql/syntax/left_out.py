"""What PostgreSQL has and this is not to have: a sentence for each kind, and what to do instead.

`docs/how-to/do-without.md` says it at length.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple, NoReturn

from leasehold.model.errors import FeatureNotSupported


class LeftOut(NamedTuple):
    """A kind of objects or statements. `instead`: what to do."""

    words: str
    instead: str


PAGE: Final = "docs/how-to/do-without.md"

FUNCTIONS: Final = LeftOut(
    "functions and procedures of one's own are not supported",
    "Compute it in the program, in a generated column, a view or an expression of an index.",
)
TRIGGERS: Final = LeftOut(
    "triggers are not supported",
    "A default or a generated column sets values, CHECK and foreign keys refuse and cascade; what"
    " follows a change reads the table's feed.",
)
BLOCKS: Final = LeftOut(
    "procedural code is not supported",
    "DO of a session knows EXCEPTION WHEN, IF, NULL, RAISE with a text, and statements of SQL; else"
    " say IF NOT EXISTS or IF EXISTS in the statements themselves, or ask first in the program.",
)
RULES: Final = LeftOut(
    "rules are not supported", "CREATE VIEW for reading; write to the tables themselves."
)
ROW_SECURITY: Final = LeftOut(
    "row security is not supported",
    "GRANT on a view that has the WHERE, or on columns; a view reads with its owner's privileges.",
)
PARTITIONS: Final = LeftOut(
    "partitions are not supported",
    "Make one table: an index over the column serves its ranges, DELETE in parts takes old rows.",
)
TEXT_SEARCH: Final = LeftOut(
    "text search is not supported",
    "ILIKE and regular expressions for small tables; a search engine that reads the table's feed.",
)
STATISTICS: Final = LeftOut(
    "extended statistics are not supported", "There are none to be kept: leave the statement out."
)
REPLICATION: Final = LeftOut(
    "logical replication of PostgreSQL's is not supported",
    "leasehold feed create has each change in Kafka; leasehold import follows a PostgreSQL.",
)
FOREIGN: Final = LeftOut(
    "foreign tables and servers are not supported",
    "leasehold import copies and follows a PostgreSQL; leasehold intake takes topics in.",
)
OPERATORS: Final = LeftOut(
    "operators, aggregates, casts, collations and languages of one's own are not supported",
    "Say the expression itself; text is compared by code point.",
)
TABLE_LOCKS: Final = LeftOut(
    "LOCK TABLE is not supported in another mode than ACCESS SHARE",
    "pg_advisory_xact_lock(n) keeps out those who ask for it, too; COMMIT verifies what a"
    " serializable transaction has read.",
)
CLUSTERS: Final = LeftOut(
    "CLUSTER and REINDEX are not supported",
    "Rows lie in the order of the primary key, and indexes are checked by leasehold check.",
)

STATEMENTS: Final[Mapping[str, LeftOut]] = {
    **dict.fromkeys(("CreateFunctionStmt", "AlterFunctionStmt", "CallStmt"), FUNCTIONS),
    **dict.fromkeys(("CreateTrigStmt", "CreateEventTrigStmt", "AlterEventTrigStmt"), TRIGGERS),
    "DoStmt": BLOCKS,
    "RuleStmt": RULES,
    **dict.fromkeys(("CreatePolicyStmt", "AlterPolicyStmt"), ROW_SECURITY),
    **dict.fromkeys(("AlterTSDictionaryStmt", "AlterTSConfigurationStmt"), TEXT_SEARCH),
    **dict.fromkeys(("CreateStatsStmt", "AlterStatsStmt"), STATISTICS),
    **dict.fromkeys(("CreatePublicationStmt", "AlterPublicationStmt"), REPLICATION),
    **dict.fromkeys(("CreateSubscriptionStmt", "AlterSubscriptionStmt"), REPLICATION),
    **dict.fromkeys(
        ("CreateForeignTableStmt", "CreateFdwStmt", "CreateForeignServerStmt"), FOREIGN
    ),
    **dict.fromkeys(("CreateUserMappingStmt", "ImportForeignSchemaStmt"), FOREIGN),
    **dict.fromkeys(("DefineStmt", "CreateCastStmt", "CreateConversionStmt"), OPERATORS),
    **dict.fromkeys(("CreatePLangStmt", "CreateOpClassStmt", "CreateOpFamilyStmt"), OPERATORS),
    "LockStmt": TABLE_LOCKS,
    **dict.fromkeys(("ClusterStmt", "ReindexStmt"), CLUSTERS),
}
"""By the kinds of a statement's node."""
ACTIONS: Final[Mapping[str, LeftOut]] = {
    **dict.fromkeys(("AT_EnableRowSecurity", "AT_DisableRowSecurity"), ROW_SECURITY),
    **dict.fromkeys(("AT_ForceRowSecurity", "AT_NoForceRowSecurity"), ROW_SECURITY),
    **dict.fromkeys(("AT_EnableTrig", "AT_EnableTrigAll", "AT_EnableTrigUser"), TRIGGERS),
    **dict.fromkeys(("AT_DisableTrig", "AT_DisableTrigAll", "AT_DisableTrigUser"), TRIGGERS),
    **dict.fromkeys(("AT_EnableAlwaysTrig", "AT_EnableReplicaTrig"), TRIGGERS),
    **dict.fromkeys(("AT_EnableRule", "AT_DisableRule"), RULES),
    **dict.fromkeys(("AT_AttachPartition", "AT_DetachPartition"), PARTITIONS),
}
"""By the kinds of an action of ALTER TABLE."""
TYPES: Final[Mapping[str, LeftOut]] = dict.fromkeys(("tsvector", "tsquery"), TEXT_SEARCH)
ALL: Final = (
    *(FUNCTIONS, TRIGGERS, BLOCKS, RULES, ROW_SECURITY, PARTITIONS, TEXT_SEARCH, STATISTICS),
    *(REPLICATION, FOREIGN, OPERATORS, TABLE_LOCKS, CLUSTERS),
)


def refuse_left_out(what: LeftOut, position: int, said: str = "") -> NoReturn:
    """Raise FeatureNotSupported with what to do. `said`: before the sentence."""
    raise FeatureNotSupported(
        f"{said}{what.words}", position=position, hint=f"{what.instead} ({PAGE})"
    )
