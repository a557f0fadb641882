"""Limits of one way stand in one table; each station takes what the one before lets through.

Method: the sources' constants of 64 KiB or more that say bytes or characters are looked for outside
of `model/byte_limits.py`; the inequalities between stations are written down.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from leasehold.adapters.codec import published, records, request_bytes, request_decoding
from leasehold.adapters.redis import requests as redis_requests
from leasehold.adapters.redis import resp
from leasehold.catalog.descriptor import COLUMNS_MAX
from leasehold.model import byte_limits as most
from leasehold.model.signatures import CONTENT_TYPE_CHARACTERS_MAX
from leasehold.model.topics import MESSAGE_BYTES_MAX
from leasehold.pipeline.chunks import CHUNK_BYTES_MAX
from leasehold.replication.master import batch_limits, refusals
from leasehold.sql.ddl.schema_statements import STATEMENT_BYTES_MAX
from leasehold.sql.syntax.source import TEXT_BYTES_MAX
from leasehold.values import jsonb, numeric, types

LIBRARY = Path(most.__file__).parents[1]
TABLE = "model/byte_limits.py"
LARGE = 64 * 1024

MEMORY = "memory of one process, which nothing travels through"
FILES = "of files and stores, which have no stations behind them"
SQL = "texts on their way through a statement, judged before they are values"
WIRE = "of a client's connection: what comes through is judged again as a request"
AT_ONCE = "how much is read at once"
REPLIES = "of Redis' replies, which hold what was told below its own limits"
SAID = "what a view says of types without a limit"
PACKING = "where packing begins: no limit"
ELSEWHERE = {
    "replication/master/request_queue.py:READ_UNPROVEN_BYTES_MAX": MEMORY,
    "node/operator_watch.py:DISK_FREE_BYTES_MIN": FILES,
    "adapters/os/certificates.py:PEM_BYTES_MAX": FILES,
    "cli/doctor/cluster_checks.py:WAL_BYTES_MAX": FILES,
    "replication/queue_limits.py:WAITING_BYTES_MAX": MEMORY,
    "replication/queue_limits.py:PUBLISHED_WAITING_BYTES_MAX": MEMORY,
    "replication/queue_limits.py:ANSWERS_BYTES_MAX": MEMORY,
    "replication/queue_limits.py:REPEATS_BYTES_MAX": MEMORY,
    "adapters/codec/records.py:ZIPPED_ABOVE_BYTES": PACKING,
    "adapters/codec/request_bytes.py:ZIPPED_ABOVE_BYTES": PACKING,
    "adapters/http/snapshot_fetch.py:SNAPSHOT_BYTES_MAX": FILES,
    "adapters/http/snapshot_server.py:BLOCK_BYTES": FILES,
    "adapters/http/snapshot_server.py:ANSWER_BYTES_PER_S_LEAST": FILES,
    "adapters/http/schema_registry.py:ANSWER_BYTES_MAX": FILES,
    "adapters/http/schema_registry.py:BLOCK_BYTES": FILES,
    "adapters/sqlite/query.py:FETCH_BYTES_MAX": AT_ONCE,
    "adapters/codec/request_bytes.py:SLICED_ABOVE_BYTES": AT_ONCE,
    "adapters/kafka/transaction.py:QUEUED_KBYTES_MAX": MEMORY,
    "adapters/kafka/writer.py:QUEUED_KBYTES_MAX": MEMORY,
    "adapters/os/row_spool.py:MEMORY_BYTES_MAX": FILES,
    "adapters/os/row_spool.py:SPOOLED_BYTES_MAX": FILES,
    "adapters/os/row_spool.py:SPOOL_BATCH_BYTES": FILES,
    "adapters/os/temp_room.py:GROWTH_BYTES_MIN": FILES,
    "adapters/postgres/client.py:RECEIVED_BYTES": WIRE,
    "adapters/postgres/connection.py:INBOX_BYTES_MAX": WIRE,
    "adapters/postgres/outlet.py:HANDED_BYTES_MAX": WIRE,
    "adapters/postgres/reader_pace.py:ASIDE_BYTES_PER_S": WIRE,
    "adapters/postgres/reader_pace.py:HELD_BYTES_PER_S": WIRE,
    "adapters/redis/connection.py:READ_BYTES": "how much is read at once",
    "adapters/redis/resp.py:REPLY_BYTES_MAX": REPLIES,
    "adapters/sqlite/checkpoints.py:WAL_BYTES_CUT": FILES,
    "adapters/sqlite/layout.py:WAL_BYTES_KEPT_MAX": FILES,
    "adapters/sqlite/layout.py:VALUE_BYTES_MAX": FILES,
    "adapters/sqlite/wal_read_ahead.py:AHEAD_BYTES": FILES,
    "adapters/sqlite/wal_read_ahead.py:STEP_BYTES": FILES,
    "adapters/sqlite/wal_read_ahead.py:CALL_BYTES": FILES,
    "backup/create.py:PART_BYTES": FILES,
    "backup/one_table.py:REQUEST_CHARACTERS": MEMORY,
    "changefeed/table_feeds.py:WAITING_BYTES_MAX": MEMORY,
    "cli/sql.py:COPIED_BYTES": "how much is read at once",
    "dbapi/connection.py:NOTIFIED_BYTES": AT_ONCE,
    "events/foreign/avro_decoding.py:SCHEMA_CHARACTERS_MAX": MEMORY,
    "intake/taker.py:BATCH_BYTES_MAX": MEMORY,
    "model/budget.py:GRAIN_BYTES": MEMORY,
    "model/budget.py:UNBOUNDED_BYTES": MEMORY,
    "pgwire/messages/client_replies.py:MESSAGE_BYTES_MAX": WIRE,
    "pipeline/chunks.py:WINDOW_BYTES_MAX": MEMORY,
    "replica/notifications.py:QUEUE_BYTES_MAX": MEMORY,
    "replica/queries.py:BYTES_MAX": MEMORY,
    "replica/row_feed.py:QUEUED_BYTES_MAX": MEMORY,
    "settings/replica.py:WHERE_BYTES_MAX": MEMORY,
    "replication/master/request_queue.py:READ_AHEAD_BYTES_MAX": MEMORY,
    "settings/setting.py:SECRET_BYTES_MAX": MEMORY,
    "settings/certificate_files.py:PEM_BYTES_MAX": MEMORY,
    "sql/functions/texts/text.py:MADE_CHARACTERS_MAX": SQL,
    "sql/planning/plan.py:PLAN_CHARACTERS_MAX": MEMORY,
    "sql/planning/plan.py:PLANS_CHARACTERS_MAX": MEMORY,
    "sql/syntax/source.py:TEXT_BYTES_MAX": SQL,
    "sql/system_catalog/information_schema.py:_UNBOUND_BYTES": SAID,
    "sql_session/named_statements.py:KEPT_BYTES_MAX": MEMORY,
    "transfer/batches.py:BATCH_BYTES": MEMORY,
    "transfer/export.py:GROUP_BYTES": MEMORY,
    "transfer/export.py:INSERT_BYTES": AT_ONCE,
    "transfer/file_import.py:KNOWN_BYTES": AT_ONCE,
    "transfer/file_import.py:READ_BYTES": AT_ONCE,
    "transfer/stream.py:GATHERED_BYTES": MEMORY,
    "values/arrays.py:CHARACTERS_MAX": SQL,
}


def literals(path: Path) -> Iterator[tuple[str, int]]:
    """Constants of a module whose value is written in numbers alone."""
    target: ast.expr
    value: ast.expr | None
    for node in ast.parse(path.read_text()).body:
        if isinstance(node, ast.AnnAssign):
            target, value = node.target, node.value
        elif isinstance(node, ast.Assign):
            target, value = node.targets[0], node.value
        else:
            continue
        if not isinstance(target, ast.Name) or value is None:
            continue
        parts = [*ast.walk(value)]
        if not all(isinstance(p, ast.BinOp | ast.Constant | ast.operator) for p in parts):
            continue
        number = eval(compile(ast.Expression(value), "", "eval"))
        if isinstance(number, int):
            yield target.id, number


def test_limits_of_bytes_have_one_place() -> None:
    found = {
        f"{path.relative_to(LIBRARY)}:{name}"
        for path in LIBRARY.rglob("*.py")
        for name, number in literals(path)
        if path != LIBRARY / TABLE and number >= LARGE and ("BYTES" in name or "CHARACTERS" in name)
    }
    assert sorted(found ^ ELSEWHERE.keys()) == [], f"say it in {TABLE}, or here why not"


ROW_OF_ONE_VALUE = 2 * (most.CHARACTER * most.VALUE + 16) + 64 * COLUMNS_MAX

HOLDS = {
    "a signature and names fit beside what is published": (
        CONTENT_TYPE_CHARACTERS_MAX * most.CHARACTER + 4_096,
        MESSAGE_BYTES_MAX - most.PUBLISHED,
    ),
    "a request as it is sent fits a message": (request_bytes.ZIPPED_BYTES_MAX, most.PUBLISHED),
    "what a message holds may be a request": (most.PUBLISHED, request_bytes.REQUEST_BYTES_MAX),
    "a commit holds what a request brings": (
        request_bytes.REQUEST_BYTES_MAX,
        batch_limits.LARGE_BYTES_MAX,
    ),
    "a commit as it is sent fits a message with what the master adds": (
        batch_limits.LARGE_ZIPPED_BYTES_MAX + batch_limits.HEADER_BYTES,
        most.MESSAGE,
    ),
    "a record is unpacked that holds a commit": (
        batch_limits.LARGE_BYTES_MAX + batch_limits.HEADER_BYTES,
        records.UNZIPPED_BYTES_MAX,
    ),
    "a record of several commits fits a message": (batch_limits.RECORD_BYTES_MAX, most.PUBLISHED),
    "a row with one value of any kind is published, its key twice": (
        ROW_OF_ONE_VALUE,
        most.PUBLISHED,
    ),
    "jsonb is a value": (jsonb.TEXT_CHARACTERS_MAX, types.TEXT_BYTES_MAX),
    "the text of a number is a value": (numeric.TEXT_CHARACTERS_MAX, types.TEXT_BYTES_MAX),
    "a refusal's words fit any record of several": (
        refusals.WORDS_BYTES_MAX,
        batch_limits.RECORD_BYTES_MAX,
    ),
    "cut words are few": (
        most.CHARACTER * (refusals.MESSAGE_CHARACTERS_MAX + 1_024),
        refusals.WORDS_BYTES_MAX,
    ),
    "a key that is cut is few words": (
        2 * most.CHARACTER * refusals.TEXT_CHARACTERS_MAX * refusals.ITEMS_MAX,
        refusals.WORDS_BYTES_MAX + 1,
    ),
    "a conflict is a refusal with a name": (most.REFUSAL + 4_096, most.PUBLISHED),
    "a body that is cut fits beside words": (
        published.BODY_BYTES_MAX + refusals.WORDS_BYTES_MAX,
        most.REFUSAL,
    ),
    "the master keeps as much of a body as its dead letter": (
        batch_limits.RECORD_BYTES_MAX // 2,
        published.BODY_BYTES_MAX,
    ),
    "words fit an answer": (2 * refusals.WORDS_BYTES_MAX, published.RESULTS_BYTES_MAX),
    "answers of several fit a message": (published.RESULTS_BYTES_MAX, most.PUBLISHED),
    "a chunk of several rows fits a message": (CHUNK_BYTES_MAX, most.PUBLISHED),
    "a schema change is written with each statement that it may have": (
        STATEMENT_BYTES_MAX,
        batch_limits.CATALOG_BYTES_MAX // 32,
    ),
    "SQL of a request is judged by who reads it": (
        STATEMENT_BYTES_MAX,
        request_decoding.SQL_BYTES_MAX,
    ),
    "an expression of a request is parsed": (request_decoding.SQL_BYTES_MAX, TEXT_BYTES_MAX),
    "a version event fits a message": (most.EVENT, most.PUBLISHED),
    "an answer that is told fits a reply of Redis": (
        redis_requests.ANSWER_BYTES_MAX,
        resp.REPLY_BYTES_MAX,
    ),
    "a request that is told fits a reply of Redis": (
        redis_requests.REQUEST_BYTES_MAX,
        resp.REPLY_BYTES_MAX,
    ),
}


@pytest.mark.parametrize("why", HOLDS)
def test_each_station_takes_what_the_one_before_lets_through(why: str) -> None:
    before, station = HOLDS[why]
    assert before <= station
