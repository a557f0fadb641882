"""A PostgreSQL that rows are read from: connections to it, its catalog, COPY.

By psycopg, which knows each way of libpq to name a server and to prove who one is; it comes with
the extra `import`. Nothing here says a password: errors of libpq name host, port and user alone.
"""

from __future__ import annotations

import contextlib
from collections.abc import Generator, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import parse_qsl, urlsplit

from leasehold.model.errors import ConfigurationError, LeaseholdError
from leasehold.settings.extras import need_extra

if TYPE_CHECKING:
    import psycopg

SCHEMES: Final = ("postgresql", "postgres")
CONNECT_TIMEOUT_S: Final = 10
SETTINGS: Final[Mapping[str, str]] = {
    "application_name": "leasehold import",
    "client_encoding": "UTF8",
    "connect_timeout": str(CONNECT_TIMEOUT_S),
}
_FORMS: Final = """
SET datestyle = 'ISO, YMD'; SET intervalstyle = 'postgres'; SET timezone = 'UTC';
SET extra_float_digits = 1; SET bytea_output = 'hex'; SET statement_timeout = 0;
SET idle_in_transaction_session_timeout = 0; SET standard_conforming_strings = on
"""
"""In which values are written as text, and that nothing ends a long copy."""


class SourceFailure(LeaseholdError, sqlstate="58030"):
    """The source does not answer as it should; its words and SQLSTATE stand in the message."""

    definite = False

    def __init__(self, message: str, code: str = "", **detail: object) -> None:
        super().__init__(message, **detail)
        self.code = code


class SourceUnreachable(SourceFailure, sqlstate="08001"):
    """The source of an import does not answer."""


def check_address(address: str) -> None:
    """Raise ConfigurationError for what can't be the address of a source. ⚠ Arguments of a process
    are seen by everybody on its machine, so a password in one is refused."""
    try:
        parts = urlsplit(address)
        given = {name.lower() for name, _ in parse_qsl(parts.query, keep_blank_values=True)}
    except ValueError:
        parts, given = urlsplit(""), set()
    if parts.scheme not in SCHEMES:
        raise ConfigurationError("a source is named as postgresql://user@host:port/database")
    if parts.password is not None or given & {"password", "sslpassword"}:
        raise ConfigurationError(
            "the source's address holds a password, which everybody on this machine can see: take"
            " it out, and name a file with --source-password-file (PGPASSFILE and ~/.pgpass are"
            " read, too)"
        )


class Source:
    """A PostgreSQL, by its address."""

    def __init__(self, address: str, password: str = "") -> None:
        """Raises ConfigurationError for an address that can't be one, or without the extra."""
        check_address(address)
        need_extra("import", "leasehold import", "psycopg")
        self.address = address
        self._password = password

    def connect(self) -> SourceConnection:
        """Return a connection of its own. Raises SourceUnreachable."""
        import psycopg

        more: dict[str, Any] = dict(SETTINGS)
        if self._password:
            more["password"] = self._password
        try:
            made = psycopg.connect(self.address, autocommit=True, **more)
            made.execute(_FORMS)
        except psycopg.ProgrammingError as error:
            raise ConfigurationError(f"the source's address can't be read: {error}") from None
        except psycopg.Error as error:
            raise SourceUnreachable(f"the source can't be reached: {_words(error)}") from None
        return SourceConnection(made)


class SourceConnection:
    """A connection to a source, for one thread. What fails is SourceFailure."""

    def __init__(self, connection: psycopg.Connection[Any]) -> None:
        self._connection = connection

    def rows(self, text: str, *values: object) -> list[tuple[Any, ...]]:
        """Return the rows of a query; [] of what is none. `values` stand for %s."""
        with told_as_source():
            # Without values a percent sign is one.
            found = self._connection.execute(text, values or None)
            return found.fetchall() if found.description is not None else []

    def value(self, text: str, *values: object) -> Any:
        """Return the only value of a query."""
        (row,) = self.rows(text, *values)
        return row[0]

    def run(self, text: str) -> None:
        """Run what has no answer. A percent sign is one."""
        with told_as_source():
            self._connection.execute(text)

    def copy_out(self, query: str) -> Generator[bytes]:
        """Yield the rows of a query in the text form of COPY, each with its line end."""
        with (
            told_as_source(),
            self._connection.cursor() as cursor,
            cursor.copy(f"COPY ({query}) TO STDOUT") as copied,
        ):
            for row in copied:
                yield bytes(row)

    def stream(self, query: str, rows_at_once: int) -> Iterator[Sequence[Any]]:
        """Yield the rows of a query, of which the server keeps those that were not asked for. It
        runs inside of a transaction of its own."""
        with (
            told_as_source(),
            self._connection.transaction(),
            self._connection.cursor(name="leasehold_import") as cursor,
        ):
            cursor.itersize = rows_at_once
            cursor.execute(query)
            yield from cursor

    def close(self) -> None:
        self._connection.close()

    def __enter__(self) -> SourceConnection:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


@contextlib.contextmanager
def told_as_source() -> Iterator[None]:
    """Turn errors of psycopg into SourceFailure."""
    import psycopg

    try:
        yield
    except psycopg.Error as error:
        code = error.sqlstate or ""
        said = f"the source says {code}: " if code else "the connection to the source has failed: "
        kind = SourceFailure if code and code[:2] != "08" else SourceUnreachable
        raise kind(said + _words(error), code) from None


def _words(error: Exception) -> str:
    return str(error).strip().replace("\n", " ")
