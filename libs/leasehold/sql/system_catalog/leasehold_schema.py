"""Relations that a node tells of itself and of its database: the schema `leasehold`, and what
PostgreSQL's tools look for of sessions. In the form of `relations.py`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from leasehold.catalog.schema_names import LEASEHOLD, PG_CATALOG
from leasehold.sql.system_catalog.relations import Relation, read_relation

_NODE: Final[Mapping[str, str]] = {
    "nodes": """
        node text, role text, coherency text, for_ms bigint, lsn bigint, log_offset bigint, epoch
        bigint, lag_lsn bigint, lag_records bigint, heard_ms bigint, serves boolean
    """,
    "leases": """
        table_name text, table_id bigint, version bigint, is_old boolean, min_version bigint,
        agent text?, session bigint?, state text?, held_ms bigint?, old_ms bigint?, work jsonb?
    """,
    "jobs": """
        job bigint, table_name text, table_id bigint, sql text, kind text, subject text, status
        text, phase text, step integer, steps integer, target text, point_of_no_return integer,
        can_cancel boolean, postponed boolean, doing text, waits_for text, fraction double
        precision, rows_done bigint, rows_total bigint, rows_per_second double precision, eta_s
        double precision?, ends_in_s double precision?, attempts integer, error text, findings
        jsonb, created timestamptz, changed timestamptz, age_ms bigint, settings jsonb, blockers
        jsonb, rows_applied bigint, phase_ms bigint?, ended timestamptz?, dismissed boolean,
        asked_by text
    """,
    "versions": """
        table_name text, table_id bigint, version bigint, is_newest boolean, lsn bigint, committed
        timestamptz, job bigint, step integer, changes text
    """,
    "transactions": """
        node text, pid integer?, user_name text?, application_name text?, label text, state text,
        isolation text?, sql text, began timestamptz?, age_ms bigint?, statement_ms bigint?, pinned
        jsonb
    """,
    "dead_letter": """
        letter bigint, request_id text?, attempt integer, sqlstate text, message text, detail
        jsonb, decided timestamptz, lane text, lane_offset bigint, content_type text, request
        jsonb?, asked_by text?
    """,
    "settings": """
        node text, name text, value text
    """,
    "catalog": """
        kind text, object_id bigint, element_id bigint, name text, lsn bigint, rows_about bigint?,
        body bytea?, said text?
    """,
}
_POSTGRESQLS: Final[Mapping[str, str]] = {
    "pg_stat_activity": """
        datid oid?, datname name?, pid integer?, leader_pid integer?, usesysid oid?, usename name?,
        application_name text?, client_addr text?, client_hostname text?, client_port integer?,
        backend_start timestamptz?, xact_start timestamptz?, query_start timestamptz?, state_change
        timestamptz?, wait_event_type text?, wait_event text?, state text?, backend_xid integer?,
        backend_xmin integer?, query_id bigint?, query text?, backend_type text?
    """,
    "pg_locks": """
        locktype text?, database oid?, relation oid?, page integer?, tuple smallint?, virtualxid
        text?, transactionid integer?, classid oid?, objid oid?, objsubid smallint?,
        virtualtransaction text?, pid integer?, mode text?, granted boolean?, fastpath boolean?,
        waitstart timestamptz?
    """,
    "pg_cursors": """
        name text?, statement text?, is_holdable boolean?, is_binary boolean?, is_scrollable
        boolean?, creation_time timestamptz?
    """,
}
NODE_RELATIONS: Final[Mapping[tuple[str, str], Relation]] = {
    (schema, name): read_relation(schema, name, text)
    for schema, texts in ((LEASEHOLD, _NODE), (PG_CATALOG, _POSTGRESQLS))
    for name, text in texts.items()
}
"""By schema and name."""
