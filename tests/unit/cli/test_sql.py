"""`leasehold sql` and `leasehold user` against a listener over a whole database in this process."""

from __future__ import annotations

import io
import signal
import socket
import ssl
import subprocess
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest

from leasehold.adapters.postgres.client import SqlConnection
from leasehold.cli.main import main
from leasehold.cli.sql_script import Statement, error_words, split, whole
from leasehold.dev.database import DevDatabase
from leasehold.model.errors import ConfigurationError, LeaseholdError, NodeUnreachable
from leasehold.pgwire.auth.scram_client import Login
from leasehold.pgwire.auth.scram_server import Exchange, verifier_of_password
from leasehold.pgwire.messages.client_replies import Hearing, Told
from leasehold.pgwire.wire_errors import ProtocolViolation
from leasehold.settings.sql_address import SqlAddress
from leasehold.settings.sql_port import PgwireSettings, users
from leasehold.sql_session.listener import SqlListener
from leasehold.sql_session.portals import QueryPortal
from tests.support.cli.json_output import check_printed

TABLE = """
create table t (id int primary key, n numeric(8,2), ok boolean, body jsonb, note text);
insert into t values (1, 1.50, true, '{"a": [1]}', 'a;b'), (2, null, false, null, '');
"""


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DevDatabase]:
    dev = DevDatabase(Path(tmp_path_factory.mktemp("sql")))
    dev.wait_ready()
    yield dev
    dev.close()


@contextmanager
def listening(database: DevDatabase, **settings: Any) -> Iterator[int]:
    listener = SqlListener(database.sql_node(), PgwireSettings(**settings))
    try:
        yield listener.port
    finally:
        listener.close()


@pytest.fixture(scope="module")
def port(database: DevDatabase) -> Iterator[int]:
    with listening(database) as made:
        with closing(SqlConnection(SqlAddress(port=made), database.cluster.shape.database)) as sql:
            for statement in whole(TABLE):
                assert not [s for s in sql.ask(statement.text) if isinstance(s, Told) and s.failed]
        yield made


@pytest.fixture
def environment(
    port: int, database: DevDatabase, monkeypatch: pytest.MonkeyPatch
) -> pytest.MonkeyPatch:
    monkeypatch.setenv("LEASEHOLD_SQL_PORT", str(port))
    monkeypatch.setenv("LEASEHOLD_DATABASE", database.cluster.shape.database)
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"")))
    return monkeypatch


def typed(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(text.encode())))


# ---------------------------------------------------------------- what is shown


def test_rows_as_a_table(
    environment: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["sql", "-c", 'select id, n, ok, note as ">x" from t order by id']) == 0
    out, err = capsys.readouterr()
    assert out.splitlines() == ["id     n  ok   >x", " 1  1.50  t   a;b", " 2  NULL  f"]
    assert err == "(2 rows)\n"
    assert main(["sql", "-c", "select E'a\\nb\\x1b[31m'"]) == 0
    assert "a\\nb\\x1b[31m" in capsys.readouterr().out  # a terminal would obey


def test_rows_as_csv(environment: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    text = 'select n, note, \'a,"b\' as "c,d" from t order by id'
    assert main(["sql", "--format", "csv", "-c", text]) == 0
    assert capsys.readouterr().out == 'n,note,"c,d"\n1.50,a;b,"a,""b"\n,"","a,""b"\n'


def test_rows_as_json(environment: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    text = "select *, 1 as id, 'NaN'::numeric as x, 1.5::double precision as d from t where id = 1"
    assert main(["sql", "--json", "-c", text]) == 0
    assert check_printed(["sql", "--json", "-c", text], capsys.readouterr().out)[0] == {
        "id": 1,
        "n": "1.50",
        "ok": True,
        "body": {"a": [1]},
        "note": "a;b",
        "id_2": 1,
        "x": "NaN",
        "d": 1.5,
    }


# ---------------------------------------------------------------- where statements come from


def test_a_file_is_run_statement_by_statement_to_the_first_that_fails(
    environment: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    script = tmp_path / "script.sql"
    script.write_text(
        "insert into t (id) values (10); -- one; only\n\n/* ; */\nselect nope,\n\tid from t;\n"
        "insert into t (id) values (11)"
    )
    assert main(["sql", str(script)]) == 1
    told = capsys.readouterr().err.splitlines()
    assert told[0] == "INSERT 0 1"
    assert told[1] == "leasehold: column 'nope' does not exist (42703)"
    assert told[2:4] == ["line 4: select nope,", "               ^"]
    assert main(["sql", "--format", "csv", "-c", "delete from t where id > 9 returning id"]) == 0
    assert capsys.readouterr().out == "id\n10\n"


def test_one_text_is_one_transaction(
    environment: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["sql", "-c", "insert into t (id) values (10); select 1/0"]) == 1
    assert "22012" in capsys.readouterr().err
    assert main(["sql", "--format", "csv", "-c", "select count(*) from t"]) == 0
    assert capsys.readouterr().out == "count\n2\n"


def test_standard_input_and_a_transaction_without_its_commit(
    environment: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    typed(environment, "begin; insert into t (id) values (10)")
    assert main(["sql"]) == 1
    assert "rolled back" in capsys.readouterr().err
    typed(environment, "select count(*) as c from t")
    assert main(["sql", "--json", "-"]) == 0
    assert capsys.readouterr().out == '{"c": 2}\n'


def test_rows_are_copied_from_standard_input(
    environment: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    typed(environment, '10,x\n11,"y"\n')
    assert main(["sql", "-c", "copy t (id, note) from stdin csv"]) == 0
    assert capsys.readouterr().err == "COPY 2\n"
    typed(environment, "copy t (id) from stdin")
    assert main(["sql"]) == 1
    assert "standard input" in capsys.readouterr().err
    assert main(["sql", "-c", "delete from t where id > 9"]) == 0


@pytest.mark.parametrize(
    ("text", "statements", "rest", "inside"),
    [
        ("", [], "", False),
        (" ; ;", [], "", False),
        ("select 1; select 2", ["select 1"], "select 2", False),
        ("select ';'; x", ["select ';'"], "x", False),
        ("select E'\\';'; x", ["select E'\\';'"], "x", False),
        ('select ";""";', ['select ";"""'], "", False),
        ("select $a$;$$;$a$;", ["select $a$;$$;$a$"], "", False),
        ("select a$b$; select $b$;", ["select a$b$"], "select $b$;", True),
        ("/* ; /* */ ; */ select 1 -- ;\n;", ["select 1 -- ;"], "", False),
        ("select 'a;", [], "select 'a;", True),
        ("x; /* ;", ["x"], "/* ;", True),
        ("-- only this", [], "", False),
        ("ä';'$1;", ["ä';'$1"], "", False),
    ],
)
def test_statements_are_told_apart(
    text: str, statements: list[str], rest: str, inside: bool
) -> None:
    found = split(text)
    assert ([s.text for s in found.statements], found.rest, found.open) == (
        statements,
        rest,
        inside,
    )


def test_the_caret_stands_under_its_place() -> None:
    long = "select " + "a, " * 60 + "nope from t"
    where = str(long.index("nope") + 1)
    line, caret = error_words({"M": "m", "C": "42703", "P": where}, Statement(long, 7)).split("\n")[
        1:
    ]
    assert line.startswith("line 7: …")
    assert line[caret.index("^") :].startswith("nope")
    words = error_words({"M": "m", "C": "c", "P": "9999", "H": "try b"}, Statement("a", 1))
    assert words == "m (c)\nhint: try b"


# ---------------------------------------------------------------- ways in


def test_nobody_there(environment: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["sql", "-p", "1", "-c", "select 1"]) == 3
    told = capsys.readouterr().err
    assert told.startswith("leasehold: no SQL node answers on 127.0.0.1:1")
    assert told.count("\n") == 1
    assert main(["sql", "-d", "nope", "-c", "select 1"]) == 1
    assert 'database "nope" does not exist' in capsys.readouterr().err
    assert main(["sql", "-c", "select 1", "file"]) == 2
    assert main(["sql", "/nowhere/at.all"]) == 2
    assert main(["sql", "--tls", "perhaps", "-c", "select 1"]) == 2
    assert "LEASEHOLD_SQL_TLS" in capsys.readouterr().err


def test_what_is_no_postgresql_port_is_said() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:

        def greet() -> None:
            peer, _ = server.accept()
            with peer:
                peer.recv(100)
                peer.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")

        thread = threading.Thread(target=greet)
        thread.start()
        with pytest.raises(NodeUnreachable):
            SqlConnection(SqlAddress(port=server.getsockname()[1]), "demo")
        thread.join()


def test_users_and_passwords(
    database: DevDatabase,
    environment: pytest.MonkeyPatch,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """What `leasehold user` makes lets in who knows the password, and nobody else."""
    file, password, wrong = (tmp_path / name for name in ("users", "password", "wrong"))
    password.write_text("naïve ﬁsh\n")
    wrong.write_text("naive fish\n")
    assert main(["user", "add", "anna", "--file", str(file), "--password-file", str(password)]) == 0
    typed(environment, "secret\n")
    assert main(["user", "add", "bob", "--file", str(file), "--password-file", "-"]) == 0
    assert file.stat().st_mode & 0o777 == 0o600
    assert "naïve" not in file.read_text()
    capsys.readouterr()
    environment.setenv("LEASEHOLD_SQL_USERS_FILE", str(file))
    assert main(["user", "list", "--json"]) == 0
    assert check_printed(["user", "list", "--json"], capsys.readouterr().out)[0] == ["anna", "bob"]
    known = users(file.read_text())
    with listening(database, users=known) as port:
        asked = ["sql", "-p", str(port), "--json", "-c", "select 1 as one"]
        assert main([*asked, "-U", "anna", "--password-file", str(password)]) == 0
        assert capsys.readouterr().out == '{"one": 1}\n'
        assert main([*asked, "-U", "anna", "--password-file", str(wrong)]) == 1
        assert "28P01" in capsys.readouterr().out
        assert main([*asked, "-U", "nobody", "--password-file", str(password)]) == 1
        assert main([*asked, "-U", "anna"]) == 2  # there is nobody to ask
        assert "--password-file" in capsys.readouterr().err
        environment.setenv("LEASEHOLD_SQL_PASSWORD_FILE", str(password))
        assert main([*asked, "-U", "anna"]) == 0
    assert main(["user", "remove", "anna"]) == 0
    assert list(users(file.read_text())) == ["bob"]
    assert main(["user", "remove", "anna"]) == 1
    assert main(["user", "add", "a=b", "--password-file", str(password)]) == 2
    assert main(["user", "add", "anna"]) == 2  # there is nobody to ask
    capsys.readouterr()
    assert main(["user", "verifier", "anna", "--password-file", str(password)]) == 0
    assert list(users(capsys.readouterr().out)) == ["anna"]
    file.write_text("anna=plain\n")
    assert main(["user", "list"]) == 2


def test_scram_checks_the_server_too() -> None:
    exchange = Exchange(verifier_of_password("secret", b"salt"), "server")
    login = Login("secret", "client", ["SCRAM-SHA-256"])
    answer = exchange.first(login.first())
    final = exchange.final(login.proof(answer))
    assert final is not None
    login.check(final)
    with pytest.raises(ProtocolViolation, match="could not prove"):
        login.check("v=" + "A" * 43 + "=")
    with pytest.raises(ProtocolViolation, match="could not prove"):
        Login("secret", "client", ["SCRAM-SHA-256"]).check("v=")  # the signature before the proof
    for bad in ("r=other,s=YQ==,i=4096", "r=client,s=YQ==,i=4096", "r=clientx,i=1", "x", ""):
        with pytest.raises(ProtocolViolation):
            Login("secret", "client", ["SCRAM-SHA-256"]).proof(bad)
    with pytest.raises(ProtocolViolation):
        Login("secret", "client", ["SCRAM-SHA-256"]).proof("r=clientx,s=YQ==,i=999999999999")


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    folder = tmp_path_factory.mktemp("tls")
    cert, key = folder / "cert.pem", folder / "key.pem"
    command = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256"]
    command += ["-nodes", "-days", "2", "-subj", "/CN=node", "-keyout", str(key)]
    command += ["-addext", "subjectAltName=IP:127.0.0.1", "-out", str(cert)]
    subprocess.run(command, check=True, capture_output=True)
    return cert, key


def test_tls_is_verified(
    database: DevDatabase,
    environment: pytest.MonkeyPatch,
    certificate: tuple[Path, Path],
    capsys: pytest.CaptureFixture[str],
) -> None:
    cert, key = certificate
    with listening(database, tls_cert=cert, tls_key=key) as port:
        asked = ["sql", "-p", str(port), "--json", "-c", "select 1 as one"]
        assert main([*asked, "--tls-ca", str(cert)]) == 0
        assert main([*asked, "--tls", "encrypt"]) == 0
        assert capsys.readouterr().out == '{"one": 1}\n' * 2
        assert main([*asked, "--tls", "verify"]) == 2
        assert "LEASEHOLD_SQL_TLS_CA" in capsys.readouterr().err
        assert main([*asked, "-H", "localhost", "--tls-ca", str(cert)]) == 2  # not its name
    assert main(["sql", "--tls", "encrypt", "-c", "select 1"]) == 2
    assert "speaks no TLS" in capsys.readouterr().err


def test_tls_is_the_rule_where_others_may_listen() -> None:
    assert SqlAddress().tls_context() is None
    assert SqlAddress(host="0.0.0.0").peer[0] == "127.0.0.1"
    for host in ("10.0.0.1", "node.example"):
        context = SqlAddress(host=host).tls_context()
        assert context is not None
        assert (context.verify_mode, context.check_hostname) == (ssl.CERT_REQUIRED, True)
    with pytest.raises(ConfigurationError):
        SqlAddress(tls_ca=Path("/nowhere/ca.pem")).tls_context()


# ---------------------------------------------------------------- by hand


def test_a_person_types(
    database: DevDatabase,
    environment: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    name = database.cluster.shape.database
    failing = ["begin;", "select 1/0; select 2;", "rollback;"]
    lines = iter(
        [
            "\\?",
            "select id",
            "from t;",
            *failing,
            "\\f csv",
            "select 'a",
            "b' as x;",
            "\\f nope",
            "\\q",
        ]
    )
    prompts: list[str] = []

    def said(prompt: str) -> str:
        prompts.append(prompt)
        return next(lines)

    environment.setattr("builtins.input", said)
    environment.setattr("sys.stdin.isatty", lambda: True, raising=False)
    assert main(["sql"]) == 0
    out, err = capsys.readouterr()
    assert [prompt.removeprefix(name) for prompt in prompts] == [
        *("=> ", "=> ", "-> ", "=> ", "=*> ", "=!> ", "=> ", "=> ", "-> ", "=> ", "=> "),
    ]
    assert "22012" in err
    assert 'x\n"a\nb"\n' in out


def test_an_interrupt_stops_the_statement_and_not_the_command(
    environment: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    begin = QueryPortal._begin
    main_thread = threading.main_thread().ident
    assert main_thread is not None
    pressed = threading.Event()

    def begun(self: QueryPortal, rows_max: int) -> Any:
        """The signal comes while the statement runs; once, also where a statement that was begun
        on the loop begins anew on a worker: a second one ends the command."""
        if not pressed.is_set():
            pressed.set()
            signal.pthread_kill(main_thread, signal.SIGINT)
        return begin(self, rows_max)

    environment.setattr(QueryPortal, "_begin", begun)
    before = signal.getsignal(signal.SIGINT)
    text = "select count(*) from generate_series(1, 3000000) a, generate_series(1, 3000000) b"
    assert main(["sql", "-c", text]) == 1
    assert "57014" in capsys.readouterr().err
    assert signal.getsignal(signal.SIGINT) is before


def test_a_connection_that_breaks_is_an_unknown_outcome(
    database: DevDatabase, environment: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:

        def answer() -> None:
            peer, _ = server.accept()
            with peer:
                peer.recv(1000)
                peer.sendall(b"R\0\0\0\x08\0\0\0\0Z\0\0\0\x05I")
                peer.recv(1000)

        thread = threading.Thread(target=answer)
        thread.start()
        command = ["sql", "-p", str(server.getsockname()[1]), "-c", "insert into t values (1)"]
        assert main(command) == 4
        thread.join()
    assert "is not known" in capsys.readouterr().err


def test_bytes_that_no_server_says_are_refused() -> None:
    for data in (
        b"?\0\0\0\x04",
        b"D\0\0\0\x00",
        b"D\0\0\0\x06\0\x05",
        b"Z\xff\xff\xff\xff",
        b"C\0\0\0\x05x",
    ):
        hearing = Hearing()
        hearing.feed(data)
        with pytest.raises(LeaseholdError):
            hearing.next()
    hearing = Hearing()
    hearing.feed(b"C\0\0\0\x0cSELE")
    assert hearing.next() is None
