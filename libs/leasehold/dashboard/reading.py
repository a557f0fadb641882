"""What pages read: the state of the database, what was counted of it, one table, dead letters."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Callable, Mapping
from typing import Any, Final, Protocol

from aiohttp import web

from leasehold.adapters.os.clock import unix_us
from leasehold.admin.dead_letters import DeadLetters, advise, letter_report
from leasehold.admin.job_report import one_job_report
from leasehold.admin.report import leases_report, report, table_report
from leasehold.admin.troubles import find_troubles
from leasehold.admin.view import ClusterView, TableView
from leasehold.catalog.job import Job
from leasehold.dashboard.acting import Acting, Refusal, answering, make_json
from leasehold.dashboard.activity.history import Series, hot_rows
from leasehold.dashboard.older_versions import OlderVersions
from leasehold.model.errors import LeaseholdError
from leasehold.settings.client import ClientSettings

LOG: Final = logging.getLogger("leasehold.dashboard")
REPORT_AT_MOST_EVERY_US: Final = 250_000
"""However many pages are open, a report is made once in this time and served to all."""
TABLES_SHOWN_MAX: Final = 200
"""More rows than that nobody reads, and a browser would be busy with drawing them."""
LETTERS_SHOWN_MAX: Final = 100
LETTERS_AT_MOST_EVERY_US: Final = 2_000_000
HOT_ROWS_SHOWN: Final = 20
HOT_WINDOWS: Final = 60
"""Minutes over which the rows that refuse requests are added up."""
BEHIND_SAID_US: Final = 10_000_000
_LETTER_COLUMNS: Final = (
    *("offset", "id", "attempt", "code", "message", "detail", "decided_us", "lane", "lane_offset"),
    *("content_type", "asked_by"),
)
_LETTERS: Final = (
    "SELECT letter, request_id, attempt, sqlstate, message, detail,"
    " CAST(extract(epoch FROM decided) * 1000000 AS bigint), lane, lane_offset, content_type,"
    " asked_by{request} FROM leasehold.dead_letter"
)


class Watched(Protocol):
    """The newest state, as `admin.watch.ClusterWatch` has it."""

    @property
    def view(self) -> ClusterView: ...


class Activity(Protocol):
    """What is counted, as far as it was read here."""

    @property
    def series(self) -> Series: ...

    @property
    def trouble(self) -> str:
        """Return why nothing is counted, or can be read; "" while all is well."""
        ...


class Reports:
    """The newest report, at most `REPORT_AT_MOST_EVERY_US` old, computed when asked for."""

    def __init__(self, watch: Watched, database: str) -> None:
        self._watch = watch
        self._database = database
        self._made_us = 0
        self._told: dict[str, Any] = {}

    def newest(self) -> dict[str, Any]:
        now_us = unix_us()
        if not 0 <= now_us - self._made_us < REPORT_AT_MOST_EVERY_US:
            told = report(self._watch.view, now_us, tables_max=TABLES_SHOWN_MAX)
            troubles = [each._asdict() for each in find_troubles(told)]
            self._told = {"database": self._database, **told, "troubles": troubles}
            self._made_us = now_us
        return self._told


class Reading:
    """Answers what pages ask, on the web server's loop."""

    def __init__(
        self,
        settings: ClientSettings,
        watch: Watched,
        activity: Activity | None,
        acting: Acting,
        find_user: Callable[[web.Request], str | None] | None,
    ) -> None:
        """Answer from these. `find_user`: says who has logged in; None where nobody has to."""
        self._settings = settings
        self._watch = watch
        self._reports = Reports(watch, settings.cluster.database)
        self._activity = activity
        self._acting = acting
        self._find_user = find_user
        self._older = OlderVersions(settings)
        self._letters: list[dict[str, Any]] = []
        self._letters_us = 0
        self._letters_lock = asyncio.Lock()

    def add_to(self, app: web.Application) -> None:
        for path, handle in (
            ("/api/state", self._state),
            ("/api/activity", self._counted),
            ("/api/tables/{table}", self._table),
            ("/api/jobs/{job}", self._job),
            ("/api/dead-letters", self._list_letters),
            ("/api/dead-letters/{offset}", self._explain_letter),
        ):
            app.router.add_get(path, answering(handle))

    async def _state(self, request: web.Request) -> web.Response:
        user = None if self._find_user is None else self._find_user(request)
        sql = self._acting.report(request)
        return make_json({"user": user, "sql": sql, **self._reports.newest()})

    async def _counted(self, request: web.Request) -> web.Response:
        """Answer windows that begin after `after`, of a `window` of 1 or 60 seconds."""
        window_s, after_s = (_number(request, name) for name in ("window", "after"))
        if window_s not in (1, 60):
            raise Refusal(400, "a window has 1 or 60 seconds")
        if self._activity is None:
            return make_json({"windows": [], "steps": [], "hot": [], "trouble": "", "on": False})
        series = self._activity.series
        minutes = series.windows("writes", 60)[-HOT_WINDOWS:]
        newest_s = series.newest_s()
        return make_json(
            {
                "on": True,
                "trouble": self._activity.trouble,
                "newest_s": newest_s,
                "stale": unix_us() - 1_000_000 * newest_s > BEHIND_SAID_US,
                "windows": series.windows("writes", window_s, after_s),
                "steps": series.windows("steps", 60)[-HOT_WINDOWS:],
                "hot": hot_rows(minutes, HOT_ROWS_SHOWN),
            }
        )

    async def _table(self, request: web.Request) -> web.Response:
        """Answer both living versions of a table, by its name."""
        name = request.match_info["table"]
        view, now_us = self._watch.view, unix_us()
        found = [
            each
            for each in view.tables.values()
            if name in (each.event.name, str(each.event.table_id))
        ]
        if not found:
            raise Refusal(404, f"there is no table {name[:80]!r}")
        newest = max(found, key=lambda each: each.event.lsn)
        table_id = newest.event.table_id
        (leases,) = leases_report(view, now_us, (table_id,)) or (None,)
        before, trouble = None, ""
        if newest.event.version > 1:
            try:
                before = await asyncio.to_thread(self._older.find, view, newest)
            except LeaseholdError as error:
                trouble = error.message
        return make_json(
            {
                "newest": table_report(view, newest),
                "before": None if before is None else table_report(view, before),
                "before_lives": _lives(newest, leases),
                "leases": leases,
                "feed": _feed_of(view, newest.event.name),
                "trouble": trouble,
            }
        )

    async def _job(self, request: web.Request) -> web.Response:
        """Answer a job with the time that each phase of its steps took."""
        number, view = _number(request, "job"), self._watch.view
        now_us = view.as_of_us(unix_us())
        told = one_job_report(view, number, now_us)
        if told is None:
            raise Refusal(404, f"there is no job {number}")
        return make_json(
            {**told, "timeline": make_timeline(view.jobs[number].job, view.log_now_us(now_us))}
        )

    # ------------------------------------------------------------ dead letters

    async def _list_letters(self, request: web.Request) -> web.Response:
        return make_json({"letters": await self._read_letters(request)})

    async def _read_letters(self, request: web.Request) -> list[dict[str, Any]]:
        """Return the newest letters, newest first: through the connection of who asks, which shows
        what he may see; where nobody logs in, straight. Raises Refusal."""
        connection = self._acting.find(request)
        if connection is not None:
            text = f"{_LETTERS.format(request='')} ORDER BY letter DESC LIMIT {LETTERS_SHOWN_MAX}"
            told = await self._acting.run(connection, text)
            return [_letter_of(row) for row in _rows_of(told)]
        if self._find_user is not None:
            raise Refusal(403, "sign in for SQL to see the dead letters that you may see")
        async with self._letters_lock:
            if unix_us() - self._letters_us >= LETTERS_AT_MOST_EVERY_US:
                try:
                    found = await asyncio.to_thread(
                        DeadLetters(self._settings).read, LETTERS_SHOWN_MAX
                    )
                except LeaseholdError as error:
                    raise Refusal(503, error.message, error.sqlstate) from None
                self._letters = [letter_report(*each) for each in reversed(found)]
                self._letters_us = unix_us()
        return self._letters

    async def _explain_letter(self, request: web.Request) -> web.Response:
        offset = _number(request, "offset")
        connection = self._acting.find(request)
        if connection is None:
            listed = await self._read_letters(request)
            found = next((each for each in listed if each["offset"] == offset), None)
        else:
            text = f"{_LETTERS.format(request=', request')} WHERE letter = {offset}"
            rows = _rows_of(await self._acting.run(connection, text))
            found = {**_letter_of(rows[0]), "request": _json_or_text(rows[0][-1])} if rows else None
        if found is None:
            raise Refusal(
                404, f"there is no dead letter {offset} among the newest that you may see"
            )
        return make_json({**found, "advice": advise(str(found["code"]))})


def _number(request: web.Request, name: str) -> int:
    text = request.match_info.get(name) or request.query.get(name, "0")
    if not (text.isascii() and text.isdigit() and len(text) <= 18):
        raise Refusal(400, f"{name} has to be a whole number")
    return int(text)


def make_timeline(job: Job, now_us: int) -> list[dict[str, Any]]:
    """Return the phases that a job has gone through, in order, with the state that their step
    publishes, when each began and how long it took; the last one of a job that runs is open."""
    marks = [*job.marks]
    ends = [at_us for _, _, at_us in marks[1:]]
    return [
        {
            "step": step + 1,
            "to": job.steps[step].label if step < len(job.steps) else "",
            "phase": phase,
            "begun_us": begun_us,
            "took_ms": max(0, end_us - begun_us) // 1_000,
            "open": number == len(marks) - 1 and not job.status.ended,
        }
        for number, ((step, phase, begun_us), end_us) in enumerate(
            zip(marks, [*ends, now_us], strict=False)
        )
        if not (number == len(marks) - 1 and job.status.ended)
    ]


def _lives(newest: TableView, leases: Mapping[str, Any] | None) -> bool:
    """Return whether somebody is on a version before the newest, or may still take one."""
    if leases is None:
        return False
    return any(one["old"] for one in leases["versions"])


def _feed_of(view: ClusterView, table: str) -> dict[str, Any] | None:
    told = view.changefeed
    for name, status, words in () if told is None else told.feeds:
        if name in (table, f"public.{table}"):
            return {"table": name, "status": status, "words": words}
    return None


def _rows_of(told: Mapping[str, Any]) -> list[list[str | None]]:
    """Return the rows of one statement. Raises Refusal for one that has failed."""
    error = told["error"]
    if error is not None:
        raise Refusal(403, error.get("message", ""), error.get("sqlstate", ""))
    return list(told["results"][0]["rows"]) if told["results"] else []


def _letter_of(row: list[str | None]) -> dict[str, Any]:
    """Return a letter under the names of `letter_report`."""
    told: dict[str, Any] = dict(zip(_LETTER_COLUMNS, row, strict=False))
    for name in ("offset", "attempt", "decided_us", "lane_offset"):
        told[name] = int(told[name]) if told[name] is not None else None
    told["detail"] = _json_or_text(told["detail"])
    told["id"] = told["id"] or "no id"
    return {**told, "asked_by": told["asked_by"] or ""}


def _json_or_text(text: str | None) -> Any:
    try:
        return None if text is None else json.loads(text)
    except (ValueError, RecursionError):
        return text
