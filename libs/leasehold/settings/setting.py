"""How settings are read: once, at start, from an environ mapping into frozen dataclasses.

A settings class is a frozen dataclass whose fields are made by `setting()`. `from_environment`
reads it, `describe` prints it with secrets masked, and nobody else looks at the environment.

For every variable NAME there is NAME_FILE: the value is then that file's content (without the
newline at its end), as orchestrators hand over secrets. An empty variable counts as not set, so
that compose files can pass variables through.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import MISSING, field, fields
from ipaddress import IPv4Address
from pathlib import Path
from typing import Any, Final, TypeVar
from urllib.parse import urlsplit

from leasehold.model.errors import ConfigurationError

Settings = TypeVar("Settings")
Parser = Callable[[str], Any]

MASK: Final = "********"
SECRET_BYTES_MAX: Final = 64 * 1024
_QUERY_PASSWORD: Final = re.compile(r"([?&]\w*password=)[^&#]*", re.IGNORECASE)
"""redis-py takes its password there, too, and its key file's."""


def setting(
    env: str,
    help: str,  # noqa: A002 - the word that argparse and dataclass metadata use
    *,
    default: Any,
    parse: Parser = str,
    secret: bool = False,
    in_repr: bool = True,
) -> Any:
    """Declare one field of a settings class.

    `parse` turns the text into the value and raises ValueError with what it expects, as words that
    fit after "expected": "a port from 0 to 65535". `secret` masks the value wherever it is shown;
    `in_repr=False` is for one that may hold a secret, such as a URL with a password.
    """
    metadata = {"env": env, "help": help, "parse": parse, "secret": secret}
    # A secret also stays out of repr(), which tracebacks and logs may show.
    return field(default=default, metadata=metadata, repr=in_repr and not secret)


def from_environment(cls: type[Settings], environ: Mapping[str, str]) -> Settings:
    """Read `cls`, a dataclass of `setting()` fields.

    Raises ConfigurationError naming the variable, its value (unless secret) and what is expected;
    the same for a NAME_FILE that can't be read and for NAME beside NAME_FILE.
    """
    values: dict[str, Any] = {}
    for item in fields(cls):  # type: ignore[arg-type]
        env = item.metadata["env"]
        text = _text(env, environ)
        if text is None:
            continue
        try:
            values[item.name] = item.metadata["parse"](text)
        except ValueError as error:
            shown = MASK if item.metadata["secret"] else repr(_without_password(text))
            raise ConfigurationError(f"{env} is {shown}; expected {error}.", variable=env) from None
    return cls(**values)


def describe(settings: object) -> dict[str, str]:
    """Variable → value as text, secrets masked: what a service prints at its start."""
    shown: dict[str, str] = {}
    for item in fields(settings):  # type: ignore[arg-type]
        value = getattr(settings, item.name)
        if item.metadata["secret"] and value:
            text = MASK
        else:
            text = "" if value is None else _without_password(str(value))
        shown[item.metadata["env"]] = text
    return shown


def to_environment(settings: object) -> dict[str, str]:
    """Variable → value that `from_environment` reads back; secrets included, defaults left out.

    For handing settings to a child process; never print it.
    """
    given: dict[str, str] = {}
    for item in fields(settings):  # type: ignore[arg-type]
        value = getattr(settings, item.name)
        if value is not None and (item.default is MISSING or value != item.default):
            given[item.metadata["env"]] = str(value)
    return given


def _text(env: str, environ: Mapping[str, str]) -> str | None:
    text = environ.get(env) or None
    path = environ.get(f"{env}_FILE") or None
    if path is None:
        return text
    if text is not None:
        raise ConfigurationError(
            f"{env} and {env}_FILE are both set; keep one of them.", variable=env
        )
    return read_value_file(env, path)


def read_value_file(env: str, path: str | Path) -> str:
    """Return what the file holds that is named for the variable `env`. Raises
    ConfigurationError."""
    path = str(path)
    try:
        with Path(path).open("rb") as source:
            content = source.read(SECRET_BYTES_MAX + 1)
        if len(content) > SECRET_BYTES_MAX:
            raise ConfigurationError(
                f"{env}_FILE names {path!r}, which is larger than {SECRET_BYTES_MAX} bytes.",
                variable=f"{env}_FILE",
            )
        return content.decode("utf-8").rstrip("\r\n")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        raise ConfigurationError(
            f"{env}_FILE names {path!r}, which can't be read: {reason}.", variable=f"{env}_FILE"
        ) from None


def _without_password(text: str) -> str:
    """A URL's password is a secret wherever the URL stands."""
    text = _QUERY_PASSWORD.sub(rf"\g<1>{MASK}", text)
    # By hand, because a URL that urlsplit refuses may stand in an error message, too.
    scheme, found, rest = text.partition("://")
    login, at, address = rest.rpartition("@")
    if not (found and at):
        return text
    return f"{scheme}://{login.partition(':')[0]}:{MASK}@{address}"


def integer(least: int, most: int, unit: str = "") -> Parser:
    """A whole number from `least` to `most`, both included."""
    wanted = f"a whole number{f' of {unit}' if unit else ''} from {least} to {most}"

    def parse(text: str) -> int:
        # int() alone would take "1_000" and " 7 ", which are more likely slips than wishes.
        number = text.removeprefix("-")
        if not (number.isascii() and number.isdigit() and least <= int(text) <= most):
            raise ValueError(wanted)
        return int(text)

    return parse


def choice(*allowed: str) -> Parser:
    """Return a parser that takes one of `allowed`, upper or lower case; the value is spelt as in
    `allowed`."""
    by_folded = {word.casefold(): word for word in allowed}

    def parse(text: str) -> str:
        if text.casefold() not in by_folded:
            raise ValueError(f"one of {', '.join(allowed)}")
        return by_folded[text.casefold()]

    return parse


def ratio(text: str) -> float:
    """A number from 0 to 1, as 0, 0.05 or 1."""
    whole, point, part = text.partition(".")
    digits = whole + part
    plain = digits.isascii() and digits.isdigit() and len(digits) <= 20 and (part or not point)
    if not (plain and float(text) <= 1):
        raise ValueError("a number from 0 to 1, such as 0.05")
    return float(text)


def http_url(text: str) -> str:
    """Check `http://host:port/path`, or `https://…`."""
    try:
        address = urlsplit(text)
        usable = address.scheme in ("http", "https") and address.hostname and address.port != 0
    except ValueError:  # the port is no number
        usable = False
    if not usable or address.username or address.fragment:
        raise ValueError("http://host:port/path or https://host:port/path, without a user")
    return text


def host_and_ports(text: str) -> str:
    """Check `host:port`, or several with commas between them, as Kafka's clients take it."""
    for part in text.split(","):
        host, colon, port = part.strip().rpartition(":")
        if not (host and colon and port.isascii() and port.isdigit() and 0 < int(port) < 65536):
            raise ValueError("host:port, or several with commas between them")
    return text


def own_address(text: str) -> str:
    """An IPv4 address that a listener can bind; a name could mean another one tomorrow."""
    try:
        return str(IPv4Address("127.0.0.1" if text == "localhost" else text))
    except ValueError:
        raise ValueError("an IPv4 address of this machine, such as 127.0.0.1, or 0.0.0.0") from None


REDIS_FORMS: Final = (
    "redis://host:port/number, rediss:// for TLS; by Sentinel:"
    " redis+sentinel://host:port,host:port/name/number, rediss+sentinel:// for TLS"
)
SENTINEL_SCHEMES: Final = ("redis+sentinel", "rediss+sentinel")


def redis_url(text: str) -> str:
    """Check the address of a Redis, in one of REDIS_FORMS."""
    parts = urlsplit(text)
    try:
        if parts.scheme in SENTINEL_SCHEMES:
            service, _, number = parts.path.removeprefix("/").partition("/")
            host_and_ports(parts.netloc.rpartition("@")[2])
            usable = bool(service) and (not number or (number.isascii() and number.isdigit()))
        else:
            named = parts.scheme in ("redis", "rediss") and parts.hostname
            usable = bool(named) and parts.port != 0
    except ValueError:  # a port is not a number
        usable = False
    if not usable:
        raise ValueError(REDIS_FORMS)
    return text


def name(text: str) -> str:
    """A name that is safe in topic names, file names and Redis keys."""
    words = text.replace("-", "").replace("_", "")
    if not (text[0].isalpha() and words.isascii() and words.isalnum() and len(text) <= 63):
        raise ValueError("a letter, then letters, digits, '-' or '_' (63 characters at most)")
    return text


PORT: Final = integer(1, 65535)
PORT_OR_ANY: Final = integer(0, 65535)
