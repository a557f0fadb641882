"""Settings: what each takes, and what becomes of them at the end of a transaction."""

from __future__ import annotations

import pytest

from leasehold.model.errors import Refused
from leasehold.sql.session_settings import SessionSettings, settings_of_options


@pytest.fixture
def settings() -> SessionSettings:
    return SessionSettings({"session_authorization": "me", "application_name": "psql"})


@pytest.mark.parametrize(
    ("name", "given", "kept"),
    [
        ("timezone", "gmt", "GMT"),
        ("timezone", "europe/berlin", "Europe/Berlin"),
        ("timezone", "+5.5", "<+05:30>-05:30"),
        ("timezone", "-8", "<-08>+08"),
        ("timezone", "0", "<+00>-00"),
        ("timezone", "+05:30", "+05:30"),
        ("timezone", "foo-3", "FOO-3"),
        ("timezone", "cet-1cest,M3.5.0,M10.5.0/3", "CET-1CEST,M3.5.0,M10.5.0/3"),
        ("timezone", "interval '-3 hours'", "<-03>+03"),
        ("datestyle", "iso", "ISO, MDY"),
        ("client_encoding", "utf-8", "UTF8"),
        ("statement_timeout", "1500", "1500ms"),
        ("statement_timeout", "2min", "2min"),
        ("statement_timeout", "0", "0"),
        ("STANDARD_CONFORMING_STRINGS", "true", "on"),
        ("default_transaction_isolation", "REPEATABLE READ", "repeatable read"),
        ("leasehold.verifyretry", "off", "off"),
        ("extra_float_digits", "3", "3"),
    ],
)
def test_values_are_kept_in_one_form(
    settings: SessionSettings, name: str, given: str, kept: str
) -> None:
    assert settings[settings.set(name, given)] == kept


@pytest.mark.parametrize(
    ("name", "given", "code"),
    [
        ("nonsense", "1", "42704"),
        ("server_version", "16", "55P02"),
        ("timezone", "Nowhere/None", "22023"),
        ("timezone", "PST", "22023"),
        ("timezone", "z", "22023"),
        ("timezone", "25", "22023"),
        ("timezone", "../etc/passwd", "22023"),
        ("timezone", "interval '1 day'", "22023"),
        ("datestyle", "German", "0A000"),
        ("client_encoding", "latin1", "0A000"),
        ("standard_conforming_strings", "off", "0A000"),
        ("standard_conforming_strings", "perhaps", "22023"),
        ("synchronous_commit", "off", "0A000"),
        ("search_path", "a b", "22023"),
        ("statement_timeout", "soon", "22023"),
        ("statement_timeout", "1000d", "22023"),
        ("extra_float_digits", "0", "22023"),
        ("leasehold.isolation", "chaos", "22023"),
    ],
)
def test_what_would_have_no_effect_is_refused(
    settings: SessionSettings, name: str, given: str, code: str
) -> None:
    before = dict(settings.all())
    with pytest.raises(Refused) as caught:
        settings.set(name, given)
    assert caught.value.sqlstate == code
    assert dict(settings.all()) == before


def test_a_failed_transaction_takes_its_settings_back(settings: SessionSettings) -> None:
    settings.begin()
    settings.set("application_name", "inside")
    assert settings.end(committed=False) == {"application_name": "psql"}
    assert settings["application_name"] == "psql"
    settings.begin()
    settings.set("application_name", "inside")
    assert settings.end(committed=True) == {}
    assert settings["application_name"] == "inside"


def test_local_ones_last_as_long_as_the_transaction(settings: SessionSettings) -> None:
    settings.begin()
    settings.set("application_name", "whole")
    settings.set("application_name", "inside", local=True)
    assert settings.end(committed=True) == {"application_name": "whole"}
    assert settings["application_name"] == "whole"


def test_reset_goes_back_to_what_the_client_came_with(settings: SessionSettings) -> None:
    settings.set("application_name", "other")
    settings.set("application_name", None)
    assert settings["application_name"] == "psql"
    settings.set("statement_timeout", "5s")
    settings.reset_all()
    assert settings.ms("statement_timeout") == 0


@pytest.mark.parametrize(
    ("options", "given"),
    [
        ("", {}),
        ("-c timezone=Europe/Berlin", {"timezone": "Europe/Berlin"}),
        ("-ctimezone=-8 --statement-timeout=5s", {"timezone": "-8", "statement_timeout": "5s"}),
        (r"-c search_path=a\ b,\\  -c x=1=2", {"search_path": "a b,\\", "x": "1=2"}),
    ],
)
def test_what_a_client_sets_by_options(options: str, given: dict[str, str]) -> None:
    assert settings_of_options(options) == given


@pytest.mark.parametrize("options", ["-c", "-c timezone", "-d 5", "geqo=off", "--", "-c =1"])
def test_options_that_say_nothing(options: str) -> None:
    with pytest.raises(Refused) as caught:
        settings_of_options(options)
    assert caught.value.sqlstate == "42601"
