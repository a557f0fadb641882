"""What both protocols share of one client's batch of messages (to Sync; one simple Query): the rows
of its statements, their tags, the end of its transaction, and ReadyForQuery."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from leasehold.model import metrics
from leasehold.model.measures import Measures
from leasehold.model.time_units import NS_PER_S
from leasehold.pgwire.limits import Limits
from leasehold.pgwire.messages import backend
from leasehold.pgwire.messages.error_fields import notice_fields
from leasehold.pgwire.named_objects import NamedObjects, NamedPortal
from leasehold.pgwire.phases import Behind
from leasehold.pgwire.replies import HandOver, Replies
from leasehold.pgwire.session import (
    Deallocated,
    Notice,
    PortalsClosed,
    Recounted,
    Report,
    Session,
    SettingChanged,
    Status,
    WouldBlock,
)
from leasehold.pgwire.wire_errors import InFailedTransaction

# Asked for with every message, and a member of an enum costs more than a call.
_IDLE: Final = Status.IDLE
_FAILED: Final = Status.FAILED
READY: Final = {status: backend.ready(status.value) for status in Status}
_COUNTED: Final = frozenset(("SELECT", "FETCH", "INSERT 0", "UPDATE", "DELETE"))


class Batch:
    """The batch that is under way, with the session, the named objects and the replies of its
    connection, which outlive it."""

    def __init__(
        self,
        session: Session,
        hand_over: HandOver,
        limits: Limits,
        measures: Measures,
        clock_ns: Callable[[], int],
    ) -> None:
        self.measures = measures
        self._clock_ns = clock_ns
        self._began_ns = 0  # of the statement that runs
        self.session = session
        self.limits = limits
        self.objects = NamedObjects(limits, session.pool)
        session.portals = self.objects
        self.replies = Replies(hand_over, limits.output_bytes_max, self.rest)
        self.is_open = False
        self.statements = 0
        """How many have begun."""
        self.steps = 0
        """Counts up with every message and statement that begins: while it rests, one runs."""
        self.suspends = False
        """Whether a portal was suspended in this batch, which may hold what others wait for."""
        self.running: NamedPortal | None = None
        """The portal without a name whose rows are being sent."""
        self.resumes = False
        """Whether the message that runs is one that had to wait."""
        self.has_begun = False
        """Whether the call that waits has to be made again, even if the client is gone."""
        self.cancelled: Exception | None = None
        """Why the batch is to end; set by any thread."""
        self._settings: dict[str, str] = {}  # to be told at ReadyForQuery
        self._known_settings: dict[str, str] = {}
        self._recounted = ""

    def welcome(self, process: int, key: bytes) -> None:
        """Tell the client what it may rely on and how to cancel, and that it may begin."""
        self._known_settings = dict(self.session.settings)
        for name, value in self._known_settings.items():
            self.replies.say(backend.parameter_status(name, value))
        self.replies.say(backend.key_data(process, key))
        self.become_ready()

    def open(self) -> None:
        """Begin a batch: nothing that was cancelled before is of this one."""
        self.is_open, self.cancelled = True, None

    def begin_statement(self) -> None:
        """Take it that a statement begins to run."""
        self.statements += 1
        self._began_ns = self._clock_ns()

    # --- rows and tags -----------------------------------------------------------------------

    def send_rows(self, portal: NamedPortal, rows_max: int) -> str | None:
        """Send `rows_max` rows at most (0: all); return the tag, or None if that many were sent.

        A portal that gave exactly `rows_max` rows counts as suspended, as in PostgreSQL.
        """
        tag = portal.tag
        portion = self.limits.rows_a_fetch_max
        while tag is None and not (rows_max and portal.sent == rows_max):
            self.stop_if_cancelled()  # before the session is asked for more
            wanted = min(portion, rows_max - portal.sent) if rows_max else portion
            rows, tag = portal.fetch(wanted)
            self.has_begun = False
            assert len(rows) <= wanted, "more rows than were asked for"
            if not portal.described:
                self.describe_rows(portal)
            if rows:
                assert portal.result is not None, "rows of a statement without columns"
                self.replies.say(b"".join(map(portal.result.row, rows)))
                portal.sent += len(rows)
            portal.tag = tag
        if portal.copies and portal.result is not None:
            self.replies.say(portal.result.last())
        sent, portal.sent = portal.sent, 0
        if rows_max and sent == rows_max:
            return None
        if tag is None or portal.result is None or portal.copies:
            return tag
        return _counted(tag, sent)

    def describe_rows(self, portal: NamedPortal) -> None:
        """Say what rows come. Of a statement whose rows are what a call gives only once that can't
        have to be made again."""
        portal.described = True
        if portal.result is not None:
            self.replies.say(portal.result.description)

    def stop_if_cancelled(self) -> None:
        """Raise the reason of a cancellation. ⚠ Not while the session waits for what it has begun:
        a commit that is on its way is one, or none, whoever wants it or not (T5)."""
        if self.cancelled is not None and not self.has_begun:
            reason, self.cancelled = self.cancelled, None
            raise reason

    def complete(self, portal: NamedPortal, tag: str) -> None:
        """Say a statement's tag, with what it has done to named objects and settings."""
        if portal.statement.prepared.ends_transaction:  # AND CHAIN begins another one
            self.objects.drop_portals()
        self.take_reports()
        self.replies.say_tag(self._recounted or tag)
        kind = (tag.partition(" ")[0].lower(),)
        self.measures.add(metrics.STATEMENTS, 1, kind)
        took_ns = self._clock_ns() - self._began_ns
        self.measures.observe(metrics.STATEMENT_S, took_ns / NS_PER_S, kind)

    def close_running(self) -> None:
        portal, self.running = self.running, None
        if portal is not None:
            portal.portal.close()

    def check_not_failed(self) -> None:
        """Raise InFailedTransaction in a block that has failed."""
        if self.session.status is _FAILED:
            raise InFailedTransaction

    # --- ends --------------------------------------------------------------------------------

    def end_transaction(self) -> WouldBlock | None:
        """End the transaction of a batch outside a block; return what it waits for, if it does.
        Raises what it fails with."""
        waits = self.session.end_batch()
        if waits is None:
            self._drop_portals_if_idle()
        return waits

    def become_ready(self) -> None:
        """Say ReadyForQuery behind the settings that have changed; the batch is over."""
        self.is_open = self.suspends = False
        if self.session.has_notifications:
            self.tell_notifications()
        self.take_reports()
        if self._recounted:
            self.replies.replace_tag(self._recounted)
        self.statements, self._recounted = 0, ""
        self.session.answer_held = False
        if self._settings:
            for name, value in self._settings.items():
                if self._known_settings.get(name) != value:
                    self.replies.say(backend.parameter_status(name, value))
            self._known_settings |= self._settings
            self._settings.clear()
        self.replies.say(READY[self.session.status])
        self.replies.flush()

    def tell_notifications(self) -> None:
        """Tell what has come to the channels that the client listens to, as far as it is one
        portion: between two transactions only."""
        for told in self.session.take_notifications(self.limits.output_bytes_max):
            self.replies.say(backend.notification(told.process, told.channel, told.payload))

    def fail(self) -> None:
        """Give back what runs, and fail its transaction."""
        self.close_running()
        self.session.fail()
        self._drop_portals_if_idle()
        for report in self.session.take_reports():
            self._tell(report)

    def rest(self, behind: Behind) -> None:
        """Put aside what the client does not take, be it that it does not read or does not go on:
        it may hold a snapshot. Only on a thread where that holds up nobody."""
        wholly = behind is Behind.STANDING
        self.session.hurried = False
        if self.running is not None:
            self.running.rest(wholly=wholly)
        self.objects.rest(wholly=wholly)
        self.suspends = False

    def _drop_portals_if_idle(self) -> None:
        if self.session.status is _IDLE:
            self.objects.drop_portals()

    # --- reports -----------------------------------------------------------------------------

    def take_reports(self) -> None:
        """Do and tell what the session has to report. Raises UnknownPreparedStatement,
        UnknownPortal."""
        for report in self.session.take_reports():
            if isinstance(report, Deallocated):
                self.objects.deallocate(report.name)
            elif isinstance(report, PortalsClosed):
                self.objects.close_portals(report.name)
            else:
                self._tell(report)

    def _tell(self, report: Report) -> None:
        """Tell the client of a report. Settings wait for ReadyForQuery, as in PostgreSQL."""
        if isinstance(report, Notice):
            self.replies.say(backend.notice(notice_fields(*report)))
        elif isinstance(report, SettingChanged):
            self._settings[report.name] = report.value
        elif isinstance(report, Recounted):
            self._recounted = report.tag


def _counted(tag: str, sent: int) -> str:
    """Return a tag that counts rows with the count of one Execute, as in PostgreSQL."""
    head, _, count = tag.rpartition(" ")
    verb = head if count.isdecimal() else tag
    return f"{verb} {sent}" if verb in _COUNTED else tag
