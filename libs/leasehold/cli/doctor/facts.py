"""The facts that the checks of `leasehold doctor` judge: plain values, gathered by `gather.py`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from leasehold.adapters.kafka.cluster_look import KafkaSeen
from leasehold.adapters.redis.server_look import RedisSeen
from leasehold.cli.doctor.finding import Unseen
from leasehold.model.process_rights import ProcessKind
from leasehold.model.records.acks import NodeReport
from leasehold.model.topics import Topics


class FileSeen(NamedTuple):
    """A file that a setting names. `mode`: its permissions, those of whom the name leads to;
    `trouble`: why it can't be looked at, "" = nothing."""

    variable: str
    path: str
    mode: int = 0
    trouble: str = ""


class CertificateSeen(NamedTuple):
    """A certificate in a file that a setting names, by its end."""

    variable: str
    path: str
    ends_us: int


class SettingsError(NamedTuple):
    """What can't be read of the environment: the variable ("" = none alone), and a sentence."""

    variable: str
    words: str


@dataclass(frozen=True, slots=True)
class SettingsSeen:
    """The settings of this process. `given`: all variables whose names begin with LEASEHOLD_;
    `known`: those that mean something, to any process; `secret_files` hold secrets."""

    given: frozenset[str] = frozenset()
    known: frozenset[str] = frozenset()
    errors: tuple[SettingsError, ...] = ()
    secret_files: tuple[FileSeen, ...] = ()
    certificates: tuple[CertificateSeen, ...] = ()
    unreadable: tuple[FileSeen, ...] = ()


class FolderSeen(NamedTuple):
    """The disk below the data folder of this host: bytes that are free, and in all."""

    path: str
    free: int
    whole: int


class NodeClock(NamedTuple):
    """How far a node's clock was ahead of this host's when its word came (below 0: behind, by the
    way that the word took, too)."""

    node: str
    ahead_us: int


@dataclass(frozen=True, slots=True)
class ClusterSeen:
    """The database as its topics and its ledger tell: `told` is `report`'s. `clocks` are of those
    who said something while it was looked at."""

    told: Mapping[str, Any]
    reports: Mapping[str, NodeReport] = field(default_factory=dict)
    clocks: tuple[NodeClock, ...] = ()
    releases: Mapping[str, str] = field(default_factory=dict)
    """Of processes that are no nodes, by name."""


@dataclass(frozen=True, slots=True)
class Facts:
    """All that is known; a part that could not be had is Unseen. `kind`: the kind of process whose
    rights are to be there."""

    now_us: int
    topics: Topics
    settings: SettingsSeen
    kind: ProcessKind
    release: str
    log_budget_bytes: int
    kafka: KafkaSeen | Unseen
    redis: RedisSeen | Unseen
    cluster: ClusterSeen | Unseen
    folder: FolderSeen | Unseen
    sentinels: int = 0
    """How many LEASEHOLD_REDIS names."""
