"""What is said to do about errors: each kind that ends a command has its hint, and its own comes
first."""

from __future__ import annotations

from leasehold.cli.command import SUMMARIES
from leasehold.cli.hints import BY_CODE, BY_KIND, MISSING_TOPIC, hint_for
from leasehold.model.errors import (
    BusUnavailable,
    ConfigurationError,
    LedgerUnavailable,
    NodeUnreachable,
    NoMaster,
    OutcomeUnknown,
    RequestTooLarge,
    TableBusy,
    UnknownJob,
    UnknownTable,
    VerifyError,
)
from tests.support.documents.document_run import ROOT

HINTS = {
    BusUnavailable("Kafka at x:1 can't be reached"): "LEASEHOLD_KAFKA",
    BusUnavailable("Kafka at x:1 has no topic nope.log; create it"): MISSING_TOPIC,
    LedgerUnavailable("Redis is away"): "LEASEHOLD_REDIS",
    NoMaster("nobody decides"): "leasehold master",
    OutcomeUnknown("the connection broke"): "before you repeat it",
    UnknownJob("job 7 does not exist"): "leasehold jobs --all",
    UnknownTable("table 'x' does not exist"): "leasehold versions",
    TableBusy("job 7 changes it"): "leasehold jobs watch",
    VerifyError("the row has changed"): "send it again",
    RequestTooLarge("the request has 9,000,000 bytes"): "limits.md",
    ConfigurationError("LEASEHOLD_KAFKA: expected host:port"): "settings.md",
    ConfigurationError("LEASEHOLD_X is wrong", hint="say Y"): "say Y",
}


def test_each_error_has_its_hint() -> None:
    wrong = {str(e): hint_for(e) for e, words in HINTS.items() if words not in hint_for(e)}
    assert wrong == {}


def test_what_says_it_all_gets_none() -> None:
    assert hint_for(ConfigurationError("a.sql can't be read: No such file")) == ""
    assert hint_for(NodeUnreachable("no SQL node answers")) == ""


def test_hints_name_what_there_is() -> None:
    """A page, a setting or a command that is gone would send people nowhere."""
    settings = (ROOT / "docs/reference/settings.md").read_text()
    missing = []
    for hint in (*BY_KIND.values(), *BY_CODE.values(), MISSING_TOPIC):
        words = hint.replace(",", " ").replace(";", " ").replace("(", " ").replace(")", " ").split()
        for n, word in enumerate(words):
            name = word.strip("?:.`")
            if name.startswith("docs/") and not (ROOT / name).exists():
                missing.append(name)
            if name.startswith("LEASEHOLD_") and name.removesuffix("_FILE") not in settings:
                missing.append(name)
            if name == "leasehold" and words[n + 1].strip("`") not in SUMMARIES:
                missing.append(words[n + 1])
    assert missing == []
