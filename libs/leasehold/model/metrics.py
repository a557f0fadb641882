"""The metrics of all processes: each is declared here, and nowhere else.

`docs/reference/metrics.md`, the alerts and the boards are made from these declarations, and tests
hold them to what is exported. Names and units are by Prometheus' conventions: seconds, bytes,
`_total` for counters. Labels have few values: a table is shown by name as long as it is among the
largest, a job while it runs.
"""

from __future__ import annotations

from typing import Final

from leasehold.model.measures import Kind, Labels, Metric

NO_LABELS: Final[Labels] = ()
SHORT_S: Final = (
    *(0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05),
    *(0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0),
)
"""What a request waits for."""
LONG_S: Final = (0.01, 0.05, 0.1, 0.5, 1.0, 5.0, 15.0, 60.0, 300.0, 1_800.0, 7_200.0, 43_200.0)
"""What a job waits for."""


class Group:
    """The metrics that some processes have, in the order in which they are declared."""

    def __init__(self, title: str) -> None:
        """Begin with none. `title`: whose they are."""
        self.title = title
        self.metrics: list[Metric] = []

    def counter(self, name: str, words: str, *labels: str) -> Metric:
        """Declare a counter; `name` is without what all names have."""
        return self._declared(Metric(f"leasehold_{name}_total", Kind.COUNTER, words, labels))

    def gauge(self, name: str, words: str, *labels: str) -> Metric:
        """Declare a gauge, with its unit in `name`."""
        return self._declared(Metric(f"leasehold_{name}", Kind.GAUGE, words, labels))

    def seconds(
        self, name: str, words: str, *labels: str, bounds: tuple[float, ...] = SHORT_S
    ) -> Metric:
        """Declare a histogram of times."""
        full = f"leasehold_{name}_seconds"
        return self._declared(Metric(full, Kind.HISTOGRAM, words, labels, bounds))

    def _declared(self, metric: Metric) -> Metric:
        self.metrics.append(metric)
        return metric


_PROCESS: Final = Group("Every process")
BUILD_INFO: Final = _PROCESS.gauge(
    "build_info", "1, for the version and whether the hot path is compiled", "version", "compiled"
)
KAFKA_UP: Final = _PROCESS.gauge(
    "kafka_client_up",
    "1 while nothing is wrong between a client of Kafka's and its broker, else 0",
    "client",
)
KAFKA_TROUBLES: Final = _PROCESS.counter(
    "kafka_client_errors", "Errors that a client of Kafka's has reported", "client"
)
REDIS_UP: Final = _PROCESS.gauge(
    "redis_connection_up",
    "1 while a connection to Redis that is wanted is there, else 0",
    "carries",
)
LOG_LINES: Final = _PROCESS.counter("log_lines", "Lines of the process's log by level", "level")
SPANS: Final = _PROCESS.counter(
    "spans", "Spans of traces that a collector has taken, or that were lost", "outcome"
)
SCRAPE_FAILURES: Final = _PROCESS.counter(
    "scrape_failures", "Parts of a process that could not be read for a scrape", "part"
)

_NODE: Final = Group("Nodes: masters, standbys, replicants, embedded replicas")
ROLE: Final = _NODE.gauge("node_role", "1 for the role that the node has now", "role")
STOPPED: Final = _NODE.gauge("node_stopped", "1 once the node can't go on, 0 before")
EPOCH: Final = _NODE.gauge("epoch", "The term of the log that the node has applied")
LSN: Final = _NODE.gauge(
    "applied_lsn", "The number of the last transaction that the node has applied"
)
OFFSET: Final = _NODE.gauge(
    "applied_log_offset", "The offset of the log that the node applies next"
)
COMMIT_TIME: Final = _NODE.gauge(
    "applied_commit_timestamp_seconds",
    "When the last transaction that the node has applied was committed, in Unix time",
)
LAG_RECORDS: Final = _NODE.gauge(
    "log_lag_records",
    "Records of the log that the broker has told of and the node has not applied, as far as it"
    " reads them from Kafka",
)
RECORDS_APPLIED: Final = _NODE.counter("records_applied", "Records of the log that were applied")
TRANSACTIONS_APPLIED: Final = _NODE.counter(
    "transactions_applied", "Transactions of the log that were applied"
)
APPLY_S: Final = _NODE.seconds("record_apply", "Time to apply a record of the log to the store")
TABLE_CHANGES: Final = _NODE.counter(
    "table_row_changes", "Rows inserted, updated or deleted, by table", "table"
)
COHERENT: Final = _NODE.gauge(
    "coherent", "1 while a serving node holds a coherency lease and answers reads, else 0"
)
COHERENCY_LOST: Final = _NODE.counter(
    "coherency_losses", "How often a serving node has lost its coherency lease"
)
COHERENCY_GAINED: Final = _NODE.counter(
    "coherency_gains", "How often a serving node has got a coherency lease that it had not"
)
INCOHERENT_S: Final = _NODE.counter(
    "incoherent_seconds", "Seconds that a serving node was without a coherency lease"
)
LEASES: Final = _NODE.gauge(
    "descriptor_leases",
    "Leases on versions of tables that the node's agent holds: on the newest one of each table, or"
    " on one before",
    "version",
)
OLD_LEASE_AGE: Final = _NODE.gauge(
    "old_lease_age_seconds",
    "Age of the oldest lease that is held on a version before the newest one, 0 without any",
)
PATH_IN_USE: Final = _NODE.gauge(
    "fast_path_in_use",
    "1 while a fast path is taken, 0 while Kafka alone carries what it is for",
    "path",
)
PATH_PAUSE_S: Final = _NODE.gauge(
    "fast_path_pause_seconds", "How long a fast path is left alone yet, after a fault", "path"
)
PATH_ENTERED: Final = _NODE.counter("fast_path_entries", "How often a fast path was taken", "path")
PATH_LEFT: Final = _NODE.counter(
    "fast_path_exits",
    "How often a fast path that was taken was left: for a fault, as it was of no use then, or to"
    " compare both ways",
    "path",
    "reason",
)
LEDGER_S: Final = _NODE.seconds("ledger_call", "Time that a call of the ledger in Redis took")
LEDGER_CALLS: Final = _NODE.counter(
    "ledger_calls", "Calls of the ledger in Redis by what came of them", "outcome"
)
SNAPSHOTS: Final = _NODE.gauge(
    "snapshots_under_way", "Copies of the store that other nodes take now"
)

_MASTER_ONLY: Final = Group("Masters")
MASTER: Final = _MASTER_ONLY.gauge("master", "1 while the node is master, else 0")
TAKEOVERS: Final = _MASTER_ONLY.counter("takeovers", "How often the node became master")
TERMS_LOST: Final = _MASTER_ONLY.counter(
    "terms_lost", "How often the node has lost its term as master"
)
COMMITS: Final = _MASTER_ONLY.counter(
    "commits", "Transactions that were committed by requests or jobs"
)
REFUSALS: Final = _MASTER_ONLY.counter(
    "refusals",
    "Requests that were refused, by SQLSTATE and what becomes of them: final, replay (its replicant"
    " runs it again), conflict (the retry stream does), dead letter",
    "sqlstate",
    "disposition",
)
REPEATS: Final = _MASTER_ONLY.counter(
    "repeated_answers", "Requests that were asked again and had been decided before"
)
RECORDS_WRITTEN: Final = _MASTER_ONLY.counter(
    "records_written", "Records that were put into the log"
)
RECORD_BYTES: Final = _MASTER_ONLY.counter(
    "record_written_bytes", "Bytes of the records put into the log"
)
QUEUE_S: Final = _MASTER_ONLY.seconds(
    "request_queue", "Station 1: time from a request's arrival at the master to its decision"
)
DECIDE_S: Final = _MASTER_ONLY.seconds(
    "record_decide", "Station 2: time in which the requests of a record are decided"
)
APPEND_S: Final = _MASTER_ONLY.seconds(
    "record_append", "Station 3: time from the append of a record to its read-back from the log"
)
NODES_S: Final = _MASTER_ONLY.seconds(
    "record_acknowledge",
    "Station 4: time from the read-back of a record with answers until every coherent node has it"
    " and they are given",
)
QUEUE_MESSAGES: Final = _MASTER_ONLY.gauge(
    "queue_messages", "Messages that were read and are not decided", "queue"
)
QUEUE_BYTES: Final = _MASTER_ONLY.gauge("queue_bytes", "Bytes of these messages", "queue")
QUEUE_BYTES_LIMIT: Final = _MASTER_ONLY.gauge(
    "queue_bytes_max", "Bytes of such messages from which on reading pauses", "queue"
)
QUEUE_PAUSED: Final = _MASTER_ONLY.gauge(
    "queue_paused", "1 while a queue is full and not read, else 0", "queue"
)
ANSWERS_BYTES: Final = _MASTER_ONLY.gauge(
    "answers_waiting_bytes", "Bytes of answers that nodes or the broker hold up"
)
ANSWERS_BYTES_LIMIT: Final = _MASTER_ONLY.gauge(
    "answers_waiting_bytes_max", "Bytes of such answers from which on nothing further is decided"
)
COHERENT_NODES: Final = _MASTER_ONLY.gauge("coherent_nodes", "Nodes that may be serving reads now")
BEHIND_RECORDS: Final = _MASTER_ONLY.gauge(
    "slowest_node_records", "Records that the slowest coherent node has not acknowledged"
)
BACKFILL_ROWS: Final = _MASTER_ONLY.counter(
    "backfill_rows", "Rows or ranges of backfills taken into the log"
)
BACKFILL_BESIDE: Final = _MASTER_ONLY.gauge(
    "backfill_round_rows", "Rows that a round of a backfill may have beside users now"
)
LEDGER_TROUBLE: Final = _MASTER_ONLY.gauge(
    "ledger_trouble", "1 while jobs can't go on as the ledger is away or contradicts itself, else 0"
)
JOBS: Final = _MASTER_ONLY.gauge("jobs", "Schema changes that have not ended", "phase", "status")
JOBS_ENDED: Final = _MASTER_ONLY.counter("jobs_ended", "Schema changes that have ended", "status")
PHASE_S: Final = _MASTER_ONLY.seconds(
    "job_phase",
    "Time that jobs which have ended spent in each phase, step by step; in `draining` they wait for"
    " leases on old versions",
    "phase",
    bounds=LONG_S,
)
JOB_AGE: Final = _MASTER_ONLY.gauge(
    "job_age_seconds", "Age of a job that has not ended", "job", "table"
)
JOB_PHASE_AGE: Final = _MASTER_ONLY.gauge(
    "job_phase_age_seconds", "How long a job is in its phase", "job", "table", "phase"
)
JOB_ROWS: Final = _MASTER_ONLY.gauge(
    "job_rows", "Rows of the table when the job was made", "job", "table"
)
JOB_ROWS_DONE: Final = _MASTER_ONLY.gauge(
    "job_rows_done", "Rows that the job's present work has filled or looked at", "job", "table"
)
_STORE: Final = Group("The store: masters, standbys, replicants, embedded replicas")
STORE_BYTES: Final = _STORE.gauge("store_bytes", "Size of the store's file")
WAL_BYTES: Final = _STORE.gauge(
    "store_wal_bytes", "Size of the file of the store's write-ahead log"
)
WAL_PAGES: Final = _STORE.gauge("store_wal_pages", "Pages that the write-ahead log holds")
WAL_PAGES_LEFT: Final = _STORE.gauge(
    "store_wal_pages_uncopied", "Pages of it that are not known to be copied into the store"
)
CHECKPOINTS: Final = _STORE.counter(
    "store_checkpoints",
    "Checkpoints of the store: by its own thread, or by the writer where that did not suffice",
    "by",
)
WAL_RESTARTS: Final = _STORE.counter(
    "store_wal_restarts", "How often the write-ahead log began anew"
)
CACHE_BYTES: Final = _STORE.gauge("store_cache_bytes", "Memory of the writer's page cache")
CACHE_HITS: Final = _STORE.counter("store_cache_hits", "Pages that the writer found in its cache")
CACHE_MISSES: Final = _STORE.counter(
    "store_cache_misses", "Pages that the writer read from the file"
)
DISK_FREE: Final = _STORE.gauge(
    "disk_free_bytes", "Bytes that are free where the store lies, for this process's user"
)
DISK_BYTES: Final = _STORE.gauge("disk_bytes", "Bytes of the file system where the store lies")
DISK_RESERVE: Final = _STORE.gauge(
    "disk_reserve_bytes", "Bytes that are kept free there (LEASEHOLD_DISK_RESERVE_MB)"
)
DISK_SHORT: Final = _STORE.gauge(
    "disk_short", "1 while less is free: a master refuses what needs room (53100); else 0"
)
STATEMENT_BYTES: Final = _STORE.gauge(
    "statement_memory_bytes", "Memory that statements and transactions of the node hold"
)
STATEMENT_BYTES_LIMIT: Final = _STORE.gauge(
    "statement_memory_bytes_max", "Memory that they may hold together"
)

_REQUESTER: Final = Group("Requesters: replicants and embedded replicas")
REQUESTS: Final = _REQUESTER.counter(
    "requests", "Change requests by what became of them, as their requester knows", "outcome"
)
REQUEST_S: Final = _REQUESTER.seconds(
    "request", "Time from a request's submission to its answer, as its requester sees it"
)
IN_FLIGHT: Final = _REQUESTER.gauge("requests_in_flight", "Requests without an outcome yet")
REPLAYS: Final = _REQUESTER.counter(
    "replays", "Transactions that were run again after a verify error"
)

_SQL: Final = Group("SQL: replicants with a port for PostgreSQL clients")
SESSIONS: Final = _SQL.gauge("sessions", "Sessions by PostgreSQL's words for their states", "state")
STATEMENTS: Final = _SQL.counter("statements", "Statements that were run, by kind", "kind")
STATEMENT_S: Final = _SQL.seconds(
    "statement",
    "Time that statements ran, by kind; the COMMIT of one that stands alone comes on top where its"
    " client sends Sync behind it (leasehold_request_seconds)",
    "kind",
)
STATEMENT_ERRORS: Final = _SQL.counter(
    "statement_errors", "Statements that have failed, by SQLSTATE", "sqlstate"
)
NOTIFIED: Final = _SQL.counter(
    "notifications", "Notifications (NOTIFY) that were put before sessions that listen"
)
NOTIFY_QUEUE: Final = _SQL.gauge(
    "notification_queue_bytes", "Bytes of notifications that sessions have not taken yet"
)
NOTIFY_LOST: Final = _SQL.counter(
    "notification_sessions_ended", "Sessions that were ended since they took no notifications"
)

_CHANGEFEED: Final = Group("The changefeed")
FEED_LSN: Final = _CHANGEFEED.gauge(
    "changefeed_lsn", "The number of the last transaction that is published"
)
FEED_OFFSET: Final = _CHANGEFEED.gauge(
    "changefeed_log_offset", "The offset of the log that is read next"
)
FEED_COMMIT_TIME: Final = _CHANGEFEED.gauge(
    "changefeed_commit_timestamp_seconds",
    "When the last transaction that is published was committed, in Unix time",
)
FEED_WAITING: Final = _CHANGEFEED.gauge(
    "changefeed_waiting_messages", "Messages that wait to be published"
)
FEED_MESSAGES: Final = _CHANGEFEED.counter("changefeed_messages", "Messages that were published")
FEED_S: Final = _CHANGEFEED.seconds(
    "changefeed_transaction", "Time that a transaction of Kafka's took"
)
FEED_HELD: Final = _CHANGEFEED.gauge(
    "changefeed_held_feeds", "Feeds that tell nothing for now, since their schema registry is away"
)
FEED_HELD_BYTES: Final = _CHANGEFEED.gauge(
    "changefeed_held_bytes", "Bytes of events that are kept for such feeds"
)
FEED_ABORTS: Final = _CHANGEFEED.counter(
    "changefeed_aborts", "Transactions of Kafka's that had to be sent again"
)
FEED_STARTS: Final = _CHANGEFEED.counter(
    "changefeed_starts", "How often the changefeed has begun, the first time included"
)

_INTAKE: Final = Group("An intake of other systems' events")
INTAKE_EVENTS: Final = _INTAKE.counter(
    "intake_events", "Events that were taken, those that say nothing of a row included", "topic"
)
INTAKE_LETTERS: Final = _INTAKE.counter(
    "intake_dead_letters", "Events that became dead letters instead of change requests", "topic"
)
INTAKE_LAG: Final = _INTAKE.gauge(
    "intake_lag_records", "Records of a topic that the broker has told of and that wait", "topic"
)
INTAKE_HELD: Final = _INTAKE.gauge(
    "intake_held",
    "1 while a topic, or a partition of it, waits for a table or a schema registry, else 0",
    "topic",
)
INTAKE_S: Final = _INTAKE.seconds("intake_transaction", "Time that a transaction of Kafka's took")
INTAKE_ABORTS: Final = _INTAKE.counter(
    "intake_aborts", "Transactions of Kafka's that had to be sent again"
)
INTAKE_STARTS: Final = _INTAKE.counter(
    "intake_starts", "How often an intake has begun, the first time included"
)

_SPARK: Final = Group("Spark's driver")
SPARK_RUNS: Final = _SPARK.gauge("spark_runs", "Backfills and validations under way", "kind")
SPARK_ROWS: Final = _SPARK.gauge("spark_run_rows", "Rows that a run has read so far", "job")
SPARK_RATE: Final = _SPARK.gauge(
    "spark_run_rows_per_second", "Rows that a run reads a second", "job"
)
SPARK_BATCHES: Final = _SPARK.counter("spark_batches", "Micro-batches that have ended", "stream")
SPARK_BATCH_S: Final = _SPARK.seconds(
    "spark_batch", "Time that a micro-batch took", "stream", bounds=LONG_S
)
SPARK_FAILURES: Final = _SPARK.counter("spark_query_failures", "Queries that ended with an error")
RETRY_WAITING: Final = _SPARK.gauge(
    "retry_waiting_requests",
    "Buckets of requests that wait for their next attempt after a conflict, 0 while there is none",
)
RETRY_TROUBLE: Final = _SPARK.gauge(
    "retry_stream_trouble", "1 while the retry stream can't work, else 0"
)

_DASHBOARD: Final = Group("The dashboard, which sees the whole database")
CLUSTER_NODES: Final = _DASHBOARD.gauge(
    "cluster_nodes",
    "Nodes that are known, by role and state: coherent, incoherent, silent, or follows (a standby)",
    "role",
    "state",
)
CLUSTER_MASTER_SILENT: Final = _DASHBOARD.gauge(
    "cluster_master_silent_seconds", "How long no record of a master's was read"
)
CLUSTER_LEDGER: Final = _DASHBOARD.gauge(
    "cluster_ledger_ready", "1 while the lease ledger is there and ready, else 0"
)
CLUSTER_FEED_SILENT: Final = _DASHBOARD.gauge(
    "cluster_changefeed_silent_seconds", "How long nothing was heard of the changefeed"
)
CLUSTER_SPARK_SILENT: Final = _DASHBOARD.gauge(
    "cluster_spark_silent_seconds", "How long nothing was heard of Spark's driver"
)
CLUSTER_LEASES: Final = _DASHBOARD.gauge(
    "cluster_descriptor_leases",
    "Leases of all agents: on the newest version of a table, or on one before",
    "version",
)
JOB_LEFT_S: Final = _DASHBOARD.gauge(
    "job_left_seconds",
    "How long a job goes on, measured on jobs that have ended; absent where nothing tells",
    "job",
    "table",
)
DEAD_LETTERS: Final = _DASHBOARD.gauge(
    "dead_letters", "Dead letters that were ever written, those that somebody resubmitted included"
)
TOPIC_BYTES: Final = _DASHBOARD.gauge(
    "topic_bytes",
    "Bytes of the records that the log and the queues have, about: those of some of them, times"
    " their number",
    "topic",
)
TOPIC_FIRST: Final = _DASHBOARD.gauge(
    "topic_first_timestamp_seconds", "When the oldest record that is kept was sent", "topic"
)
TOPIC_BUDGET: Final = _DASHBOARD.gauge(
    "topic_budget_ratio", "How much of LEASEHOLD_LOG_BUDGET_MB that is; 1: all of it", "topic"
)
REDIS_BYTES: Final = _DASHBOARD.gauge("redis_memory_bytes", "Memory that Redis uses")
REDIS_BUDGET: Final = _DASHBOARD.gauge(
    "redis_memory_ratio", "How much of its maxmemory that is; absent where it has none"
)

GROUPS: Final = (
    *(_PROCESS, _NODE, _MASTER_ONLY, _STORE, _REQUESTER, _SQL, _CHANGEFEED, _INTAKE, _SPARK),
    _DASHBOARD,
)
"""All metrics, by the processes that have them."""
METRICS: Final[dict[str, Metric]] = {
    metric.name: metric for group in GROUPS for metric in group.metrics
}
