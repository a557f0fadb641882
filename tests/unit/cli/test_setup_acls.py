"""`leasehold setup-acls`, as far as no server is needed: who is what, and users of Redis."""

from __future__ import annotations

from pathlib import Path

import pytest

from leasehold.adapters.redis.users import UserRules, digest_of, is_as_wanted, is_open
from leasehold.cli.access.setup_acls import is_principal
from leasehold.cli.main import main
from leasehold.model.process_rights import KIND_NAMED

PASSWORD = "a password that nobody is to see"


@pytest.fixture
def passwords(tmp_path: Path) -> Path:
    for name in ("node", "till"):
        (tmp_path / name).write_text(f"{PASSWORD}\n")
    return tmp_path


@pytest.mark.parametrize(
    ("text", "right"),
    [
        ("User:anna", True),
        ("User:CN=m1,O=Example", True),
        ("anna", False),
        ("User:", False),
        ("User:*", False),
        ("User: anna", False),
        ("User:an\nna", False),
        ("Group:g", False),
        ("User:" + "x" * 300, False),
    ],
)
def test_principals(text: str, right: bool) -> None:
    assert is_principal(text) == right


def test_lines_for_redis_hold_digests_and_no_password(
    passwords: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    named = tmp_path / "principals"
    named.write_text("# who\nproducer User:till\n\naudit User:anna\n")
    words = ["--master", "User:node", "--replicant", "User:node", "--file", str(named)]
    code = main(["setup-acls", *words, "--redis-lines", "--redis-passwords", str(passwords)])
    told = capsys.readouterr()
    assert code == 0, told.err
    node, till = told.out.splitlines()
    assert PASSWORD not in told.out + told.err
    assert node.startswith(f"ACL SETUSER node reset on #{digest_of(PASSWORD)} +ping +select (~")
    assert "+hset" in node
    assert "&leasehold:{demo}:log:*" in node
    assert "~" not in till
    assert "(+publish &leasehold:{demo}:requests:*)" in till


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ([], "say which of them is which kind"),
        (["--master", "m"], "can't be a principal"),
        (["--file", "FILE"], "there is no kind 'king'"),
        (["--master", "User:node", "--redis-lines"], "--redis-passwords"),
        (["--master", "User:nobody", "--redis-lines", "--redis-passwords", "DIR"], "can't be read"),
        (
            ["--master", "User:default", "--redis-lines", "--redis-passwords", "DIR"],
            "user of Redis",
        ),
        (["--master", "User:a b", "--redis-lines", "--redis-passwords", "DIR"], "user of Redis"),
        (["--master", "User:short", "--redis-lines", "--redis-passwords", "DIR"], "no password"),
    ],
)
def test_what_is_wrong_is_said_with_exit_code_2(
    words: list[str], told: str, passwords: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (passwords / "FILE").write_text("king User:anna\n")
    (passwords / "short").write_text("1234\n")
    named = {"FILE": str(passwords / "FILE"), "DIR": str(passwords)}
    assert main(["setup-acls", *(named.get(word, word) for word in words)]) == 2
    assert told in " ".join(capsys.readouterr().err.split())


def test_a_line_of_redis_is_compared_whatever_its_order_is() -> None:
    rules = KIND_NAMED["producer"].redis_rules("demo")
    assert rules is not None
    wanted = UserRules("till", ("ab12",), rules)
    line = (
        "user till on sanitize-payload #ab12 resetchannels -@all +select +ping"
        " (resetchannels &leasehold:{demo}:answers:* -@all +subscribe)"
        " (resetchannels &leasehold:{demo}:requests:* -@all +publish)"
    )
    assert is_as_wanted(line, wanted)
    for other in (
        line.replace(" on ", " off "),
        line.replace("#ab12", "#ab13"),
        line.replace("#ab12", "nopass"),
        line.replace("+ping", "+ping +get"),
        line.replace("requests:*", "*"),
        f"{line} (+keys)",
        line.replace("-@all +select", "~* -@all +select"),
    ):
        assert not is_as_wanted(other, wanted), other


def test_a_redis_that_is_open_to_everybody_is_noticed() -> None:
    assert is_open("user default on nopass sanitize-payload ~* &* +@all")
    assert not is_open("user default off nopass sanitize-payload ~* &* +@all")
    assert not is_open("user default on #ab sanitize-payload ~* &* +@all")
