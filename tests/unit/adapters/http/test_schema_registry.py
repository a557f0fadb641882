"""Goal: what a schema registry decides is told at once, what may pass is tried again until one
deadline, and no answer of it stops who asks.

Method: a registry in this process that says what it is told to say.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from leasehold.adapters.http import schema_registry
from leasehold.adapters.http.schema_registry import SchemaRegistry, Verdict
from leasehold.model.errors import ConfigurationError, IncompatibleSchema, RegistryUnavailable
from leasehold.settings.environment import describe, from_environment
from leasehold.settings.schema_registry import SchemaRegistrySettings
from tests.support.registry.double import RegistryDouble, registry_double

AWAY = "http://127.0.0.1:1"


@pytest.fixture
def double() -> Iterator[RegistryDouble]:
    with registry_double() as made:
        yield made


@pytest.fixture(autouse=True)
def short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(schema_registry, "PAUSE_S", 0.001)


def client(url: str, wait_s: float = 20.0, **more: Any) -> SchemaRegistry:
    return SchemaRegistry(SchemaRegistrySettings(urls=url, **more), wait_s)


def text_of(registry: SchemaRegistry, number: int) -> str:
    found = registry.find_schema(number)
    assert found is not None
    return found.text


def test_a_number_that_no_schema_has_is_told_from_a_registry_that_is_none(
    double: RegistryDouble,
) -> None:
    double.always = (404, {"error_code": 40403, "message": "Schema not found"})
    assert client(double.url).find_schema(9) is None
    for answer in ((404, {"error_code": 404, "message": "no page"}), (404, b"<html>")):
        double.always = answer
        with pytest.raises(RegistryUnavailable, match="404"):
            client(double.url).find_schema(9)


def test_a_schema_has_a_number_and_a_number_its_schema(double: RegistryDouble) -> None:
    registry = client(double.url)
    assert registry.number_of("a/b-value", "AVRO", '"int"') == 1
    assert registry.number_of("a/b-value", "AVRO", '"long"') == 2
    assert registry.number_of("a/b-value", "AVRO", '"int"') == 1
    assert double.seen[0][1] == "/subjects/a%2Fb-value/versions"
    assert text_of(registry, 2) == '"long"'
    asked = len(double.seen)
    assert text_of(registry, 2) == '"long"'
    assert len(double.seen) == asked, "it is kept"


def test_schemas_that_are_kept_have_a_limit(
    double: RegistryDouble, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(schema_registry, "CACHED_MAX", 2)
    registry = client(double.url)
    for number in range(3):
        double.number("s", str(number))
    texts = [text_of(registry, number) for number in (1, 2, 1, 3)]
    asked = len(double.seen)
    assert [text_of(registry, number) for number in (1, 3)] == [texts[0], texts[3]]
    assert len(double.seen) == asked
    text_of(registry, 2)
    assert len(double.seen) == asked + 1, "the one that was not used for the longest time went"


def test_what_may_pass_is_tried_again(double: RegistryDouble) -> None:
    double.faults = [(503, {"message": "not now"}), None, (429, b""), (500, b"<html>")]
    assert client(double.url).number_of("s", "AVRO", '"int"') == 1
    assert len(double.seen) == 5


def test_another_address_is_asked_where_one_is_away(double: RegistryDouble) -> None:
    assert client(f"{AWAY}, {double.url}").number_of("s", "AVRO", '"int"') == 1


@pytest.mark.parametrize("url", [AWAY, None])
def test_one_that_is_away_has_a_deadline(double: RegistryDouble, url: str | None) -> None:
    double.always = (503, {"message": "not now"})
    with pytest.raises(RegistryUnavailable, match=r"no answer within 0\.05 s"):
        client(url or double.url, 0.05).number_of("s", "AVRO", '"int"')


def test_whoever_is_to_end_waits_no_more(double: RegistryDouble) -> None:
    double.always = (503, {"message": "not now"})
    settings = SchemaRegistrySettings(urls=double.url)
    with pytest.raises(RegistryUnavailable, match="not waited for"):
        SchemaRegistry(settings, 3600.0, lambda: len(double.seen) > 1).number_of("s", "AVRO", "x")


@pytest.mark.parametrize(
    ("status", "message", "error", "words"),
    [
        (409, "incompatible", IncompatibleSchema, "refuses subject s: incompatible"),
        (422, "no Avro", IncompatibleSchema, "no Avro"),
        (401, "who?", RegistryUnavailable, "LEASEHOLD_REGISTRY_USERNAME"),
        (403, "no", RegistryUnavailable, "may not do that"),
        (404, "no path", RegistryUnavailable, "not there"),
        (299 + 5, "gone", RegistryUnavailable, "304"),
        (418, "teapot", RegistryUnavailable, "418"),
        (499, "strange", RegistryUnavailable, "499"),
    ],
)
def test_what_it_decides_is_told_at_once(
    double: RegistryDouble, status: int, message: str, error: type[Exception], words: str
) -> None:
    double.faults = [(status, {"error_code": status * 100, "message": message})]
    with pytest.raises(error, match=words):
        client(double.url).number_of("s", "AVRO", '"int"')
    assert len(double.seen) == 1


@pytest.mark.parametrize(
    "answer", [b"<html>", b"[" * 100_000, b"[]", b"{}", b'{"id": "1"}', b'{"id": -1}', b""]
)
def test_an_answer_that_is_none_is_no_number(double: RegistryDouble, answer: bytes) -> None:
    double.always = (200, answer)
    with pytest.raises(RegistryUnavailable):
        client(double.url).number_of("s", "AVRO", '"int"')
    with pytest.raises(RegistryUnavailable):
        client(double.url).verdict("s", "AVRO", '"int"')


def test_an_answer_without_end_is_none(
    double: RegistryDouble, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(schema_registry, "ANSWER_BYTES_MAX", 1_000)
    double.faults = [(200, b" " * 1_001)]
    assert client(double.url).number_of("s", "AVRO", '"int"') == 1
    assert len(double.seen) == 2


def test_a_verdict_has_its_reasons(double: RegistryDouble) -> None:
    registry = client(double.url)
    assert registry.verdict("s", "PROTOBUF", "x") == Verdict(True)
    double.compatible, double.reasons = False, ["NAME is missing", "x" * 1_000]
    found = registry.verdict("s", "PROTOBUF", "x")
    assert (found.compatible, found.reasons[0]) == (False, "NAME is missing")
    assert len(found.reasons[1]) == schema_registry.WORDS_CHARACTERS_MAX
    double.faults = [(404, {"error_code": 40401, "message": "Subject not found"})]
    assert registry.verdict("s", "AVRO", "x").compatible, "a subject may begin with any"
    double.faults = [(404, {"message": "no such path"})]
    with pytest.raises(RegistryUnavailable):
        registry.verdict("s", "AVRO", "x")


def test_schemas_that_others_register_are_looked_up(double: RegistryDouble) -> None:
    registry = client(double.url, schemas="look-up")
    with pytest.raises(RegistryUnavailable, match="subject s, it is not there"):
        registry.number_of("s", "AVRO", "x")
    double.number("s", "x")
    assert registry.number_of("s", "AVRO", "x") == 1


def test_a_user_is_shown_and_never_told(double: RegistryDouble) -> None:
    settings = from_environment(
        SchemaRegistrySettings,
        {
            "LEASEHOLD_REGISTRY": double.url,
            "LEASEHOLD_REGISTRY_USERNAME": "ann",
            "LEASEHOLD_REGISTRY_PASSWORD": "geheim",
        },
    )
    SchemaRegistry(settings, 20.0).set_rule("s", "FULL")
    assert double.rules == {"s": "FULL"}
    assert double.seen[0][2] == "Basic YW5uOmdlaGVpbQ=="
    assert "geheim" not in f"{settings!r} {describe(settings)}"
    double.always = (401, {"message": "no"})
    with pytest.raises(RegistryUnavailable) as error:
        SchemaRegistry(settings, 0.1).set_rule("s", "FULL")
    assert "geheim" not in str(error.value)


@pytest.mark.parametrize(
    "url",
    [
        *(
            "ftp://a",
            "a:80",
            "http://",
            "http://a:99999",
            "http://u:p@a",
            "http://a?x",
            "http://a,",
        ),
    ],
)
def test_what_is_no_address_is_refused(url: str) -> None:
    with pytest.raises(ConfigurationError, match="LEASEHOLD_REGISTRY"):
        from_environment(SchemaRegistrySettings, {"LEASEHOLD_REGISTRY": url})


def test_halves_of_settings_are_refused() -> None:
    for name in ("USERNAME", "CERTIFICATE"):
        with pytest.raises(ConfigurationError, match="both or neither"):
            from_environment(SchemaRegistrySettings, {f"LEASEHOLD_REGISTRY_{name}": "x"})
