"""A connection to a node's SQL port, for one thread; simple queries, told as they are answered."""

from __future__ import annotations

import contextlib
import secrets
import socket
import ssl
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from leasehold.model.errors import ConfigurationError, NodeUnreachable, OutcomeUnknown, Refused
from leasehold.pgwire.auth.endpoint_binding import endpoint_binding
from leasehold.pgwire.auth.scram_client import Login
from leasehold.pgwire.auth.scram_server import MECHANISM_PLUS
from leasehold.pgwire.messages import backend, client_requests
from leasehold.pgwire.messages.client_replies import (
    Authentication,
    CopyWanted,
    Hearing,
    Key,
    Parameter,
    Ready,
    Said,
    Told,
)
from leasehold.pgwire.wire_errors import ProtocolViolation
from leasehold.settings.sql_address import DISABLE, REQUIRE, SqlAddress

CONNECT_TIMEOUT_S: Final = 10.0
RECEIVED_BYTES: Final = 1 << 16
NONCE_BYTES: Final = 18


class PasswordWanted(ConfigurationError):
    """The node asks for one, and none was given."""


class SqlConnection:
    """A connection to a node's SQL port. `status` is I, or T and E inside of a transaction block.
    `cancel` may be called from any thread, or a signal's handler."""

    def __init__(
        self,
        address: SqlAddress,
        database: str,
        *,
        application: str = "leasehold sql",
        answer_timeout_s: float | None = None,
    ) -> None:
        """Connect and log in. Raises NodeUnreachable, ConfigurationError (a password is wanted, TLS
        is not as it has to be), and what the node turns a client away with. `application`: the
        name that the node shows. `answer_timeout_s`: how long it may be silent later on."""
        self._address = address
        self._application = application
        self._answer_timeout_s = answer_timeout_s
        self._tls = address.tls_context()
        self._socket = self._connect()
        self._hearing = Hearing()
        self._key = Key(0, b"")
        self.status = "I"
        self.settings: dict[str, str] = {}
        self._login: Login | None = None
        self._proved = False
        try:
            self._log_in(database)
        except (OSError, ProtocolViolation) as error:
            self.close()
            raise self._make_unreachable(error) from error
        except BaseException:
            self.close()
            raise

    @property
    def proved(self) -> bool:
        """Whether a password was asked for, and both sides have proved that they know it."""
        return self._proved

    # ------------------------------------------------------------ asking

    def ask(
        self,
        text: str,
        copied: Iterable[bytes] | None = None,
        parameters: Sequence[str] | None = None,
    ) -> Iterator[Said]:
        """Send a text, and yield what is answered, in order: Columns, Row, Complete, Told; to the
        end, also after an error among them. `copied` is data for COPY FROM STDIN. With `parameters`
        it is one statement, and they are the values of $1, $2 …, as texts. Raises OutcomeUnknown
        (08007) when the connection breaks, ProtocolViolation for a text that can't be sent."""
        if any("\0" in each for each in (text, *(parameters or ()))):
            raise ProtocolViolation("the text holds a zero character")
        if parameters is None:
            asked = client_requests.query(text)
        else:
            asked = client_requests.single_statement(text, parameters)
        try:
            self._socket.sendall(asked)
            while not isinstance(said := self._read_message(), Ready):
                if isinstance(said, Parameter):
                    self.settings[said.name] = said.value
                elif isinstance(said, CopyWanted):
                    self._copy(copied)
                else:
                    yield said
            self.status = said.status
        except OSError as error:
            raise OutcomeUnknown(
                f"the connection to {self._named} ended while a statement ran; whether it was done"
                f" is not known: {error}"
            ) from error

    def cancel(self) -> None:
        """Make what runs now end soon with 57014; a node that can't be reached is let be."""
        with contextlib.suppress(OSError, NodeUnreachable), self._connect() as other:
            other.sendall(client_requests.cancel(*self._key))
            other.recv(1)  # it hangs up once it has read

    def close(self) -> None:
        with contextlib.suppress(OSError):
            self._socket.sendall(client_requests.TERMINATE)
        self._socket.close()

    def _copy(self, copied: Iterable[bytes] | None) -> None:
        if copied is None:
            words = "COPY takes its rows from standard input here: leasehold sql -c 'COPY …' < FILE"
            self._socket.sendall(client_requests.copy_fail(words))
            return
        for data in copied:
            self._socket.sendall(backend.copy_data(data))
        self._socket.sendall(backend.COPY_DONE)

    def _read_message(self) -> Said:
        """Return the next message. Raises OSError once nobody speaks there any more."""
        while (said := self._hearing.next()) is None:
            data = self._socket.recv(RECEIVED_BYTES)
            if not data:
                raise ConnectionResetError("it hung up")
            self._hearing.feed(data)
        return said

    # ------------------------------------------------------------ coming in

    @property
    def _named(self) -> str:
        return "{}:{}".format(*self._address.peer)

    def _make_unreachable(self, error: Exception) -> NodeUnreachable:
        return NodeUnreachable(
            f"no SQL node answers on {self._named}: {error}. Does it run (make up, leasehold"
            " status), and are LEASEHOLD_SQL_HOST and LEASEHOLD_SQL_PORT right?"
        )

    def _connect(self) -> socket.socket:
        host = self._address.peer[0]
        try:
            made = socket.create_connection(self._address.peer, CONNECT_TIMEOUT_S)
        except OSError as error:
            raise self._make_unreachable(error) from error
        try:
            if self._tls is not None:
                made = self._encrypt(made, self._tls, host)
            made.settimeout(None)
        except ssl.SSLError as error:
            made.close()
            raise ConfigurationError(
                f"{self._named} has no certificate that is trusted here: {error.reason or error};"
                " name its CA in LEASEHOLD_SQL_TLS_CA"
            ) from error
        except OSError as error:
            made.close()
            raise self._make_unreachable(error) from error
        except BaseException:
            made.close()
            raise
        return made

    def _encrypt(self, made: socket.socket, context: ssl.SSLContext, host: str) -> socket.socket:
        made.sendall(client_requests.TLS)
        if made.recv(1) != b"S":
            raise ConfigurationError(
                f"{self._named} speaks no TLS, which is required here; only where nobody else"
                " listens on the way: LEASEHOLD_SQL_TLS=off"
            )
        return context.wrap_socket(made, server_hostname=host)

    def _log_in(self, database: str) -> None:
        self._socket.settimeout(CONNECT_TIMEOUT_S)
        parameters = {
            "user": self._address.user,
            "database": database,
            "application_name": self._application,
            "client_encoding": "UTF8",
        }
        self._socket.sendall(client_requests.startup(parameters))
        while not isinstance(said := self._read_message(), Ready):
            match said:
                case Authentication():
                    self._prove(said)
                case Key():
                    self._key = said
                case Parameter():
                    self.settings[said.name] = said.value
                case Told(failed=True):
                    raise _make_refusal(said.fields)
        self._socket.settimeout(self._answer_timeout_s)

    def _prove(self, said: Authentication) -> None:
        match said.code:
            case 0:
                self._check_let_in()
            case 10:
                if not self._address.password:
                    raise PasswordWanted(
                        f"{self._named} asks for the password of {self._address.user!r}: put it in"
                        " a file and name that with --password-file or LEASEHOLD_SQL_PASSWORD_FILE"
                    )
                login = self._begin_login(said.mechanisms)
                self._socket.sendall(client_requests.sasl_initial(login.mechanism, login.first()))
            case 11 if self._login is not None:
                proof = self._login.proof(_decode_text(said))
                self._socket.sendall(client_requests.sasl_response(proof))
            case 12 if self._login is not None:
                self._login.check(_decode_text(said))
                self._proved = True
            case _:
                raise ProtocolViolation("it asks for a kind of password that is not spoken here")

    def _begin_login(self, offered: Sequence[str]) -> Login:
        """Choose how to prove who we are: bound to this very channel wherever that can be, so that
        nobody in between can pass the proof on."""
        address = self._address
        binding = None
        if isinstance(self._socket, ssl.SSLSocket) and address.channel_binding != DISABLE:
            certificate = self._socket.getpeercert(binary_form=True)
            binding = None if certificate is None else endpoint_binding(certificate)
        nonce = secrets.token_urlsafe(NONCE_BYTES)
        login = Login(address.password, nonce, offered, binding)
        if address.channel_binding == REQUIRE and login.mechanism != MECHANISM_PLUS:
            raise ConfigurationError(
                f"LEASEHOLD_SQL_CHANNEL_BINDING is require, and {self._named} "
                + (
                    "offers no channel binding"
                    if binding is not None
                    else "can't be bound to: without TLS, or by a certificate that has no hash"
                )
            )
        self._login = login
        return login

    def _check_let_in(self) -> None:
        """Check that who lets us in has shown that he knows the password, where that was asked
        for."""
        if self._login is not None and not self._proved:
            raise ProtocolViolation("the server let us in before it proved who it is")
        if self._login is None and self._address.channel_binding == REQUIRE:
            raise ConfigurationError(
                f"LEASEHOLD_SQL_CHANNEL_BINDING is require, and {self._named} asks for no password"
            )


def _make_refusal(fields: Mapping[str, str]) -> Refused:
    """Return the error of a node that does not let us in, with its own words and SQLSTATE, be it
    one of the tree or not."""
    kind = type("TurnedAway", (Refused,), {"sqlstate": fields.get("C", Refused.sqlstate)})
    made: Refused = kind(fields.get("M", "the node gave no reason"))
    return made


def _decode_text(said: Authentication) -> str:
    return said.data.decode(errors="replace")
