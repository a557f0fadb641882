"""The command `leasehold sql`: statements to a node's port for PostgreSQL clients; psql is not
needed."""

from __future__ import annotations

import argparse
import contextlib
import getpass
import os
import signal
import sys
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Final

from leasehold.adapters.postgres.client import PasswordWanted, SqlConnection
from leasehold.cli.command import Subparsers, add, read_text_file
from leasehold.cli.exit_code import ExitCode
from leasehold.cli.output import Output
from leasehold.cli.sql_rows import FORMATS, Rows, make_rows
from leasehold.cli.sql_script import Statement, error_words, split, whole
from leasehold.model.errors import ConfigurationError
from leasehold.pgwire.messages.client_replies import (
    Columns,
    Complete,
    Copied,
    Notified,
    Row,
    Told,
)
from leasehold.settings.client import ClientSettings
from leasehold.settings.setting import from_environment
from leasehold.settings.sql_address import SqlAddress

COPIED_BYTES: Final = 1 << 16
CODES: Final = {"08007": ExitCode.UNKNOWN, "58030": ExitCode.UNREACHABLE}
HELP: Final = """\
Statements come from -c, a FILE, standard input, or a person who types them. What -c gives is one
text: a transaction, unless it says BEGIN itself; of a file each statement is one. The first that
fails ends it. Rows to be copied come from standard input:
leasehold sql -c "COPY t FROM STDIN CSV" < FILE; COPY t TO STDOUT writes them.

Whom it asks: LEASEHOLD_SQL_HOST, _PORT, _USER, _PASSWORD_FILE, _TLS (verify, encrypt, off) and
_TLS_CA, or the options below."""
ASKED_HELP: Final = """\
\\q            leave (also Ctrl-D)
\\f FORMAT     show rows as table, csv or json
\\?            this
Statements end in a semicolon. Ctrl-C stops what runs, or lets go what is typed."""
_OPTIONS: Final = {
    "host": "LEASEHOLD_SQL_HOST",
    "port": "LEASEHOLD_SQL_PORT",
    "user": "LEASEHOLD_SQL_USER",
    "password_file": "LEASEHOLD_SQL_PASSWORD_FILE",
    "tls": "LEASEHOLD_SQL_TLS",
    "tls_ca": "LEASEHOLD_SQL_TLS_CA",
}


def register(subparsers: Subparsers) -> None:
    parser = add(subparsers, "sql", run, HELP)
    parser.add_argument("file", metavar="FILE", nargs="?", help="statements; - = standard input")
    parser.add_argument("-c", "--command", metavar="SQL", help="this text")
    parser.add_argument("--format", choices=FORMATS, help="of rows (table)")
    add_address_options(parser)


def add_address_options(parser: argparse.ArgumentParser) -> None:
    """Give a subcommand the options that `address_of` reads, and the database's name."""
    parser.add_argument("-d", "--database", help="as LEASEHOLD_DATABASE")
    parser.add_argument("-H", "--host", help="the node's name or address")
    parser.add_argument("-p", "--port", help="its port for SQL")
    parser.add_argument("-U", "--user", help="as whom")
    parser.add_argument("--password-file", metavar="FILE", help="holds the password")
    parser.add_argument("--tls", metavar="HOW", help="verify, encrypt or off")
    parser.add_argument("--tls-ca", metavar="FILE", help="PEM file of the CA that is trusted")


def run(args: argparse.Namespace, settings: ClientSettings, output: Output) -> int:
    if args.command is not None and args.file is not None:
        raise ConfigurationError("-c and FILE are both given; keep one of them")
    form = args.format or ("json" if args.json else "table")
    output = Output(as_json=form == "json")
    script = None if args.command is not None else _read_script(args.file)
    connection = _connect(address_of(args), args.database or settings.cluster.database)
    with contextlib.closing(connection):
        client = SqlClient(connection, make_rows(form, output), output)
        if args.command is not None:
            return client.run(Statement(args.command, 1), _read_standard_input())
        if script is None:
            return _run_by_hand(client, args.database or settings.cluster.database)
        return client.run_all(whole(script))


def address_of(args: argparse.Namespace) -> SqlAddress:
    """Return where the options and the environment say that SQL is asked for. Raises
    ConfigurationError."""
    environ = dict(os.environ)
    for option, variable in _OPTIONS.items():
        given = getattr(args, option)
        if given is not None:
            environ.pop(variable.removesuffix("_FILE"), None)
            environ.pop(f"{variable}_FILE", None)
            environ[variable] = given
    return from_environment(SqlAddress, environ)


def _connect(address: SqlAddress, database: str) -> SqlConnection:
    try:
        return SqlConnection(address, database)
    except PasswordWanted:
        if not sys.stdin.isatty():
            raise
    given = getpass.getpass(f"password of {address.user}: ")
    return SqlConnection(replace(address, password=given), database)


def _read_script(name: str | None) -> str | None:
    """Return the text to run, or None where a person types. Raises ConfigurationError."""
    if name is None or name == "-":
        return None if name is None and sys.stdin.isatty() else sys.stdin.read()
    return read_text_file(name)


def _read_standard_input() -> Iterator[bytes]:
    while data := sys.stdin.buffer.read(COPIED_BYTES):
        yield data


class SqlClient:
    """Runs statements and tells what comes of them."""

    def __init__(self, connection: SqlConnection, rows: Rows, output: Output) -> None:
        self.connection = connection
        self.rows = rows
        self._output = output

    def show_as(self, form: str) -> None:
        self.rows = make_rows(form, self._output)

    def run_all(self, statements: Iterable[Statement]) -> ExitCode:
        """Run statements until one fails. A transaction that is open at the end was not
        committed."""
        for statement in statements:
            code = self.run(statement)
            if code is not ExitCode.OK:
                return code
        if self.connection.status == "I":
            return ExitCode.OK
        self._output.error("the text ends inside of a transaction, which is rolled back: COMMIT it")
        return ExitCode.NOT_RIGHT

    def run(self, statement: Statement, copied: Iterable[bytes] | None = None) -> ExitCode:
        """Run one text and show what is answered. Raises OutcomeUnknown when the connection
        breaks."""
        code, in_rows = ExitCode.OK, False
        with _interrupts_cancel(self.connection):
            for said in self.connection.ask(statement.text, copied):
                match said:
                    case Columns():
                        self.rows.begin(said.fields)
                        in_rows = True
                    case Row():
                        self.rows.row(said.values)
                    case Copied(data=data):
                        self._output.data(data)
                    case Complete():
                        if in_rows:
                            self.rows.end()
                        elif said.tag:
                            self._output.note(said.tag)
                        in_rows = False
                    case Told(failed=True):
                        if in_rows:
                            self.rows.end()
                        fields = said.fields
                        # A node says its own hint, if any, among the words.
                        own = "" if "H" in fields else None
                        words = error_words(fields, statement)
                        self._output.error(words, fields.get("C", ""), own)
                        code = CODES.get(fields.get("C", ""), ExitCode.NOT_RIGHT)
                    case Notified():
                        self._output.note(_notified_words(said))
                    case Told():
                        severity = said.fields.get("S", "notice").lower()
                        self._output.note(f"{severity}: {said.fields.get('M', '')}")
        return code


def _notified_words(said: Notified) -> str:
    payload = f" with payload {said.payload!r}" if said.payload else ""
    by = f"process {said.process} of this node" if said.process else "another node"
    return f"notified on {said.channel!r}{payload} by {by}"


@contextlib.contextmanager
def _interrupts_cancel(connection: SqlConnection) -> Iterator[None]:
    """Make Ctrl-C stop the statement; a second one ends the command."""
    before = signal.getsignal(signal.SIGINT)

    def once(*_: object) -> None:
        signal.signal(signal.SIGINT, before)
        connection.cancel()

    signal.signal(signal.SIGINT, once)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


# ---------------------------------------------------------------- by hand

_MARKS: Final = {"I": "", "T": "*", "E": "!"}


def _run_by_hand(client: SqlClient, database: str) -> ExitCode:
    with contextlib.suppress(ImportError):
        import readline  # noqa: F401 - input() then has a history and can be edited
    version = client.connection.settings.get("server_version", "")
    sys.stdout.write(f"{database}, {version}; \\? tells what can be typed\n")
    typed = ""
    while True:
        inside = "-" if typed else "="
        mark = _MARKS.get(client.connection.status, "")
        try:
            line = input(f"{database}{inside}{mark}> ")
        except EOFError:
            sys.stdout.write("\n")
            return ExitCode.OK
        except KeyboardInterrupt:
            sys.stdout.write("\n")
            typed = ""
            continue
        if not typed and line.lstrip().startswith("\\"):
            if not _do_command(client, line.split()):
                return ExitCode.OK
            continue
        statements, typed, _ = split(typed + line + "\n")
        for statement in statements:
            if client.run(statement) is not ExitCode.OK:
                break


def _do_command(client: SqlClient, words: list[str]) -> bool:
    """Do what a line with a backslash says, and return False if it says to leave."""
    match words:
        case ["\\q" | "\\quit"]:
            return False
        case ["\\f", form] if form in FORMATS:
            client.show_as(form)
        case _:
            sys.stdout.write(ASKED_HELP + "\n")
    return True
