"""COPY and its options, in parentheses and as older clients say them."""

from __future__ import annotations

from typing import Any, Final

from leasehold.model.errors import FeatureNotSupported, InvalidArgument, SyntaxInvalid
from leasehold.sql.syntax.accounting import Body, handles
from leasehold.sql.syntax.names import relation_name
from leasehold.sql.syntax.options import read_option, said_by
from leasehold.sql.syntax.session_statements import CopyIn, CopyOptions, CopyOut
from leasehold.sql.syntax.statement import Reading, Span, names_of, only

handles(
    "CopyStmt",
    *("relation", "query", "attlist", "is_from", "is_program", "filename", "options"),
    whereClause="COPY … WHERE",
)
_TRUE: Final = frozenset({"true", "on", "1"})
_FALSE: Final = frozenset({"false", "off", "0"})
_UTF8: Final = frozenset({"UTF8", "UNICODE"})

Columns = tuple[tuple[str, int], ...]


def copied(reading: Reading, body: Body) -> CopyIn | CopyOut:
    """COPY {t [(columns)] | (query)} {FROM STDIN | TO STDOUT} [options]"""
    reading.read("CopyStmt", body)
    out = not body.get("is_from")
    first = reading.span.first + 1
    if "filename" in body or body.get("is_program"):
        what = "to" if out else "from"
        reading.refuse(
            f"COPY {what} a file or a program on the server is not supported",
            reading.next(first, what) + 1,
        )
    if "query" in body:
        return _query(reading, body, first)
    relation = body["relation"]
    schema = relation.get("schemaname")
    name = relation_name(reading, relation)
    word_index = reading.at(relation["location"])
    end = reading.behind_name(word_index)
    at = reading.position(word_index if schema is None else word_index + 2)
    columns = None
    if "attlist" in body:
        columns = _columns(reading, names_of(body["attlist"]), reading.within(end))
    options = _options(reading, body.get("options", []), out=out)
    if out:
        return CopyOut(name, at, columns, options)
    return CopyIn(name, at, columns, options)


def _query(reading: Reading, body: Body, word_index: int) -> CopyOut:
    if "SelectStmt" not in body["query"]:
        reading.refuse("COPY of what is no query is not supported", word_index + 1)
    within = reading.within(word_index)
    begin, end = reading.position(within.first) - 1, reading.position(within.end) - 1
    options = _options(reading, body.get("options", []), out=True)
    span = (begin - reading.offset, end - reading.offset)
    return CopyOut("", reading.position(word_index), None, options, span)


def _columns(reading: Reading, names: tuple[str, ...], span: Span) -> Columns:
    """The names, and where each of them stands."""
    spans = list(reading.listed(span))[: len(names)]
    return tuple(
        (name, reading.position(one.first)) for name, one in zip(names, spans, strict=True)
    )


def _options(reading: Reading, nodes: list[Any], *, out: bool) -> CopyOptions:
    options: dict[str, Any] = {}
    seen: set[str] = set()
    for node in nodes:
        body = node["DefElem"]
        name = read_option(reading.source, body)
        if name in seen:
            raise SyntaxInvalid("conflicting or redundant options", position=_at(reading, body))
        seen.add(name)
        _option(reading, name, body, options, out=out)
    return CopyOptions(**options)


def _at(reading: Reading, body: Body) -> int:
    return reading.source.position(body["location"])


def _option(reading: Reading, name: str, body: Body, options: dict[str, Any], *, out: bool) -> None:
    at = _at(reading, body)
    match name:
        case "format":
            form = said_by(body) or ""
            if form not in ("text", "csv", "binary"):
                raise FeatureNotSupported(
                    f"COPY in the format {form!r:.40} is not supported", position=at
                )
            options["csv"], options["binary"] = form == "csv", form == "binary"
        case "delimiter" | "null" | "quote" | "escape":
            options[name] = _constant(name, body, at)
        case "header":
            _header(body, options, at, out=out)
        case "freeze":  # asks for nothing that readers could tell
            given = said_by(body)
            if given is not None and given not in _TRUE | _FALSE:
                raise FeatureNotSupported(f"COPY FREEZE {given!r} is not supported", position=at)
        case "force_quote":
            if not out:
                raise FeatureNotSupported("COPY force quote is for COPY TO", position=at)
            options[name] = _forced(reading, name, body, all_may_be=True)
        case "force_null" | "force_not_null":
            if out:
                said = name.replace("_", " ")
                raise FeatureNotSupported(
                    f"COPY {said} only available using COPY FROM", position=at
                )
            options[name] = _forced(reading, name, body)
        case "encoding":
            if _constant(name, body, at).upper().replace("-", "") not in _UTF8:
                raise FeatureNotSupported(
                    "COPY in another encoding than UTF8 is not supported: convert the file"
                    " first, as iconv does",
                    position=at,
                )
        case _:
            raise FeatureNotSupported(f"COPY option {name!r:.40} is not supported", position=at)


def _header(body: Body, options: dict[str, Any], at: int, *, out: bool) -> None:
    given = said_by(body)
    if given == "match":
        if out:
            raise FeatureNotSupported('cannot use "match" with HEADER in COPY TO', position=at)
        options["header"] = options["header_matches"] = True
        return
    if given is not None and given not in _TRUE | _FALSE:
        raise SyntaxInvalid('header requires a Boolean value or "match"', position=at)
    options["header"] = given is None or given in _TRUE


def _constant(name: str, body: Body, at: int) -> str:
    kind, value = only(body["arg"]) if "arg" in body else ("", {})
    if kind == "String":
        return str(value.get("sval", ""))
    if kind == "Integer":
        return str(value.get("ival", 0))
    raise SyntaxInvalid(f"{name} requires a parameter", position=at)


def _forced(reading: Reading, name: str, body: Body, *, all_may_be: bool = False) -> Columns | None:
    """The columns; None: all of them. Older clients name them without parentheses."""
    kind, value = only(body["arg"]) if "arg" in body else ("", {})
    if kind == "A_Star" and all_may_be:
        return None
    if kind != "List":
        raise InvalidArgument(
            f'argument to option "{name}" must be a list of column names',
            position=_at(reading, body),
        )
    word_index = reading.at(body["location"])
    names = names_of(value["items"])
    if reading.word(word_index) == "force":
        first = reading.behind(word_index + 1, "not", "null", "quote")
        return _columns(reading, names, Span(first, reading.span.end))
    return _columns(reading, names, reading.within(reading.opening(word_index)))
