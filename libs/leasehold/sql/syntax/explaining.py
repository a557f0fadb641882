"""EXPLAIN's options: (READS), and PostgreSQL's. Those that only say how much is told are taken and
change nothing; what would run the statement, or tell it in another form, is refused."""

from __future__ import annotations

from typing import Final, NamedTuple

from leasehold.model.errors import InvalidArgument, SyntaxInvalid
from leasehold.sql.syntax.accounting import Body, refuse
from leasehold.sql.syntax.options import read_option, said_by
from leasehold.sql.syntax.source import Source

_TOLD_LESS_OR_MORE: Final = frozenset({"verbose", "costs", "settings", "buffers", "summary"})
_WITH_ANALYZE: Final = frozenset({"wal", "timing"})
_TRUE: Final = frozenset({"on", "true", "1"})
_FALSE: Final = frozenset({"off", "false", "0"})


class Asked(NamedTuple):
    """What EXPLAIN is to tell: READS, and in which form."""

    reads: bool = False
    as_json: bool = False


def read_options(source: Source, options: list[Body]) -> Asked:
    """Return what the options ask for. Raises SyntaxInvalid, InvalidArgument,
    FeatureNotSupported."""
    asked = Asked()
    for node in options:
        asked = _option(source, node["DefElem"], asked)
    if asked.reads and asked.as_json:
        refuse("EXPLAIN (READS) in another format than TEXT", source.position(0))
    return asked


def _option(source: Source, body: Body, asked: Asked) -> Asked:
    read_option(source, body)
    at = source.position(body.get("location", 0))
    name = body["defname"]
    if name == "reads":
        return asked._replace(reads=True)
    said = said_by(body)
    if name == "format":
        if said not in ("text", "json"):
            refuse("EXPLAIN in another format than TEXT and JSON", at)
        return asked._replace(as_json=said == "json")
    if said is not None and said not in _TRUE | _FALSE:
        raise SyntaxInvalid(f"{name} requires a Boolean value", position=at)
    wanted = said is None or said in _TRUE
    if name == "analyze":
        if wanted:
            refuse("EXPLAIN ANALYZE", at)
    elif name in _WITH_ANALYZE:
        if wanted:
            raise InvalidArgument(f"EXPLAIN option {name.upper()} requires ANALYZE")
    elif name not in _TOLD_LESS_OR_MORE:
        raise SyntaxInvalid(f'unrecognized EXPLAIN option "{name:.63}"', position=at)
    return asked
