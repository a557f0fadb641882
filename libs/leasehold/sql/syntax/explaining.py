"""EXPLAIN's options: (READS), and PostgreSQL's. Those that only say how much is told are taken and
change nothing; what would run the statement, or tell it in another form, is refused."""

from __future__ import annotations

from typing import Final

from leasehold.model.errors import InvalidArgument, SyntaxInvalid
from leasehold.sql.syntax.accounting import Body, refuse
from leasehold.sql.syntax.options import read_option, said_by
from leasehold.sql.syntax.source import Source

_TOLD_LESS_OR_MORE: Final = frozenset({"verbose", "costs", "settings", "buffers", "summary"})
_WITH_ANALYZE: Final = frozenset({"wal", "timing"})
_TRUE: Final = frozenset({"on", "true", "1"})
_FALSE: Final = frozenset({"off", "false", "0"})


def reads_asked(source: Source, options: list[Body]) -> bool:
    """Return whether (READS) was among the options. Raises SyntaxInvalid, InvalidArgument,
    FeatureNotSupported."""
    reads = False
    for node in options:
        reads |= _option(source, node["DefElem"])
    return reads


def _option(source: Source, body: Body) -> bool:
    read_option(source, body)
    at = source.position(body.get("location", 0))
    name = body["defname"]
    if name == "reads":
        return True
    said = said_by(body)
    if name == "format":
        if said != "text":
            refuse("EXPLAIN in another format than TEXT", at)
        return False
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
    return False
