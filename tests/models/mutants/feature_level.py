"""Upgrades with one rule broken each."""

from __future__ import annotations

from leasehold.model.features import NEWEST, FeatureGate
from tests.models.model_feature_level import Model, Process, Record, World


class WritesOnceAllRead(Model):
    """Whatever the database is finalized up to: one that goes back then finds what it can't
    read."""

    def gate(self, world: World) -> FeatureGate:
        return FeatureGate(lambda number, _: self.all_read(world, number))


class FinalizesUnasked(Model):
    """Whoever is there."""

    def may_finalize(self, gate: FeatureGate) -> bool:
        return True


class TakesSilenceForConsent(Model):
    """A new master counts those alone that it has heard by now."""

    def has_waited(self, world: World) -> bool:
        return True


class ReadsOverTheLevel(Model):
    """A process that does not know what a level is goes on."""

    def refuses(self, reads: int, level: int) -> bool:
        return False


class OpensAnyStore(Model):
    """A process stops at the record alone, which is behind it when its store has read it."""

    def started(self, world: World, process: Process, reads: int) -> Process:
        return process._replace(reads=reads)


class WritesWithTheLevel(Model):
    """What the level permits stands in its record, in front of it."""

    def finalized(self, log: tuple[Record, ...]) -> tuple[Record, ...]:
        return (*log, Record.FORM, Record.LEVEL)


class KeepsTheLevelInMind(Model):
    """A master's own, not what the log says: the next one begins at its own newest."""

    def level(self, world: World) -> int:
        return NEWEST if world.takeovers else super().level(world)
