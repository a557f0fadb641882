"""A master vouches for calls that extend sessions only while the log says that it is one (D11)."""

from __future__ import annotations

from typing import Any

import pytest

from leasehold.catalog.catalog import Catalog
from leasehold.in_process.ledger import MemoryLedger
from leasehold.lease.commands import Command, OpenSession, Renew, Vouch
from leasehold.lease.replies import Opened, Renewed
from leasehold.model.errors import LedgerUnavailable
from leasehold.model.ports import Now
from leasehold.model.records.log import LedgerRun
from leasehold.model.time_units import NS_PER_MS
from leasehold.schema_change.coordinator.ledger import LedgerSide, LedgerSideSettings

SETTINGS = LedgerSideSettings(session_ttl_ms=3_000, vouches=True)


class Mastership:
    """A LedgerSide, its ledger, and what the log has of it. There are no tables to wait for."""

    def __init__(self, settings: LedgerSideSettings = SETTINGS, epoch: int = 1) -> None:
        self.catalog = Catalog()
        self.ledger = MemoryLedger()
        self.side = LedgerSide(self.catalog, epoch, settings)
        self.now_ms = 0
        self.sent: list[Command] = []

    @property
    def now(self) -> Now:
        return Now(self.now_ms * NS_PER_MS, self.now_ms * 1_000)

    def perform(self, wanted: list[Any]) -> None:
        for each in wanted:
            if isinstance(each, LedgerRun):
                self.catalog.ledger_run = each.run_id
                self.perform(self.side.catalog_changed(self.now))
                continue
            self.sent.append(each)
            reply: Any
            try:
                reply = self.ledger.call(each)
            except LedgerUnavailable as error:
                reply = error
            self.perform(self.side.take_reply(each, reply, self.now.mono_ns, self.now))

    def pass_time(self, ms: int) -> None:
        self.now_ms += ms
        self.perform(self.side.tick(self.now))

    def read_back(self, appended_ms: int) -> None:
        """A record that this master appended then stands in the log as its own."""
        self.perform(self.side.confirmed(appended_ms * NS_PER_MS))

    @property
    def vouched(self) -> int:
        return self.ledger.state().vouched


def opened(settings: LedgerSideSettings = SETTINGS) -> Mastership:
    mastership = Mastership(settings)
    mastership.pass_time(1)
    assert not mastership.side.trouble(mastership.now)
    reply = mastership.ledger.call(OpenSession("s", 7))
    assert reply == Opened("memory-1", 7, int(settings.vouches), 0)
    return mastership


def test_d11_it_vouches_for_what_it_saw_before_a_record_that_it_read_back() -> None:
    mastership = opened()
    mastership.pass_time(1_000)
    assert mastership.side.awaits_confirmation
    mastership.read_back(appended_ms=1_000)  # the look was answered at 1,001
    assert mastership.vouched == 0, "by then another may have been master"
    mastership.read_back(appended_ms=1_001)
    assert mastership.vouched == 1
    assert mastership.ledger.call(Renew(7, 1, 0, 0)) == Renewed("memory-1", 1, 2, 1)
    assert not mastership.side.awaits_confirmation


def test_d11_a_master_that_is_none_any_more_vouches_for_nothing() -> None:
    """It looks on and on; nothing that it appends is read back as its own."""
    mastership = opened()
    for _ in range(10):
        mastership.pass_time(1_000)
    assert mastership.vouched == 0
    assert not [each for each in mastership.sent if isinstance(each, Vouch)]


def test_d11_what_it_saw_of_a_state_that_is_gone_counts_no_more() -> None:
    """The numbers of calls begin anew, and the old one would cover those that it has not seen."""
    mastership = opened()
    for counter in range(1, 6):
        mastership.ledger.call(Renew(7, counter, 0, counter - 1))
    mastership.pass_time(1_000)
    mastership.ledger.flush()
    mastership.pass_time(1_000)
    mastership.pass_time(100)
    mastership.ledger.call(OpenSession("s", 8))
    mastership.read_back(appended_ms=mastership.now_ms)
    assert mastership.vouched == 0


def test_d11_after_a_loss_it_vouches_for_the_first_call_again() -> None:
    """Whose number is that of the last one before it."""
    mastership = opened()
    mastership.pass_time(1_000)
    mastership.read_back(appended_ms=mastership.now_ms)
    assert mastership.vouched == 1
    mastership.ledger.flush()
    mastership.pass_time(1_000)
    mastership.ledger.call(OpenSession("s", 8))
    mastership.pass_time(1_000)
    mastership.read_back(appended_ms=mastership.now_ms)
    assert mastership.vouched == 1


def test_d11_an_answer_that_was_lost_is_made_up_for() -> None:
    mastership = opened()
    mastership.pass_time(1_000)
    mastership.ledger.reachable = False
    mastership.read_back(appended_ms=mastership.now_ms)
    mastership.ledger.reachable = True
    mastership.pass_time(1_000)
    mastership.pass_time(1_000)
    mastership.read_back(appended_ms=mastership.now_ms)
    assert mastership.vouched == 1


@pytest.mark.parametrize("times", [1, 3])
def test_d11_nobody_waits_where_no_other_server_can_take_its_place(times: int) -> None:
    mastership = opened(LedgerSideSettings(session_ttl_ms=3_000))
    for _ in range(times):
        mastership.pass_time(1_000)
        mastership.read_back(appended_ms=mastership.now_ms)
    assert not mastership.side.awaits_confirmation
    assert not [each for each in mastership.sent if isinstance(each, Vouch)]
    assert mastership.ledger.call(Renew(7, 1, 0, 0)) == Renewed("memory-1", 1, 0, 0)
