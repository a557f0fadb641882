"""COPY and its options, in parentheses and as older clients say them."""

from __future__ import annotations

from typing import Any

from leasehold.model.errors import FeatureNotSupported, InvalidArgument, SyntaxInvalid
from leasehold.sql.query_lexer import END, NUMBER, STRING, WORD, Words
from leasehold.sql.session_statements import CopyIn, CopyOptions, CopyOut


def copy(words: Words, offset: int) -> CopyIn | CopyOut:
    """What follows COPY; `offset`: of the statement in its text."""
    at = words.position
    if words.at("("):
        span = _copied_query(words, offset)
        _to_stdout(words)
        return CopyOut("", at, None, _options(words, out=True), span)
    table = words.name()
    if words.take("."):
        if table != "public":
            raise FeatureNotSupported(f"there is no schema {table!r}: name the table alone")
        at, table = words.position, words.name()
    columns = _copied_columns(words) if words.at("(") else None
    if words.at("to"):
        _to_stdout(words)
        return CopyOut(table, at, columns, _options(words, out=True))
    words.expect("from")
    if not words.take("stdin"):
        words.refuse("COPY from a file or a program on the server")
    given = _options(words, out=False)
    if words.at("where"):
        words.refuse("COPY … WHERE")
    return CopyIn(table, at, columns, given)


def _to_stdout(words: Words) -> None:
    words.expect("to")
    if not words.take("stdout"):
        words.refuse("COPY to a file or a program on the server")


def _copied_query(words: Words, offset: int) -> tuple[int, int]:
    """Where the text between its parentheses stands, from the statement's beginning."""
    words.advance()
    if words.said() not in ("select", "values", "with", "table", "("):
        words.refuse("COPY of what is no query")
    begin, depth = words.position - 1, 1
    while depth:
        if words.peek().kind == END:
            raise words.unexpected()
        depth += {"(": 1, ")": -1}.get(words.said(), 0)
        end = words.position - 1
        words.advance()
    return begin - offset, end - offset


def _options(words: Words, *, out: bool) -> CopyOptions:
    options: dict[str, Any] = {}
    words.take("with")
    if words.take("("):
        _option(words, options, out=out)
        while words.take(","):
            _option(words, options, out=out)
        words.expect(")")
    else:
        _old_options(words, options, out=out)
    return CopyOptions(**options)


def _copied_columns(words: Words) -> tuple[tuple[str, int], ...]:
    words.expect("(")
    found = _named_columns(words)
    words.expect(")")
    return found


def _named_columns(words: Words) -> tuple[tuple[str, int], ...]:
    found = []
    while True:
        at = words.position
        found.append((words.name(), at))
        if not words.take(","):
            return tuple(found)


def _option(words: Words, options: dict[str, Any], *, out: bool) -> None:
    at = words.position
    name = words.label().lower()
    if name == "format":
        quoted = words.peek().kind == STRING
        form = words.advance().text.lower() if quoted else words.label().lower()
        if form not in ("text", "csv", "binary"):
            raise FeatureNotSupported(f"COPY in the format {form!r} is not supported", position=at)
        options["csv"], options["binary"] = form == "csv", form == "binary"
    elif name in ("delimiter", "null", "quote", "escape"):
        options[name] = _constant(words)
    elif name in ("header", "freeze"):
        given = "true"
        if words.peek().kind in (WORD, STRING, NUMBER):
            given = words.advance().text.lower()
        if name == "header" and given == "match":
            if out:
                raise FeatureNotSupported('cannot use "match" with HEADER in COPY TO', position=at)
            options[name] = options["header_matches"] = True
            return
        if given not in ("true", "on", "1", "false", "off", "0"):
            if name == "header":
                raise SyntaxInvalid('header requires a Boolean value or "match"', position=at)
            raise FeatureNotSupported(
                f"COPY {name.upper()} {given!r} is not supported", position=at
            )
        if name == "header":  # FREEZE asks for nothing that readers could tell
            options[name] = given in ("true", "on", "1")
    elif name == "force_quote":
        if not out:
            raise FeatureNotSupported("COPY force quote is for COPY TO", position=at)
        options[name] = None if words.take("*") else _copied_columns(words)
    elif name in ("force_null", "force_not_null"):
        _forced_columns(words, options, name, at, out=out)
    elif name == "encoding":
        if _constant(words).upper().replace("-", "") not in ("UTF8", "UNICODE"):
            raise FeatureNotSupported("COPY in another encoding than UTF8", position=at)
    else:
        raise FeatureNotSupported(f"COPY option {name!r:.40} is not supported", position=at)


def _forced_columns(
    words: Words, options: dict[str, Any], name: str, at: int, *, out: bool, bare: bool = False
) -> None:
    if name in options:
        raise SyntaxInvalid("conflicting or redundant options", position=at)
    if out:
        said = name.replace("_", " ")
        raise FeatureNotSupported(f"COPY {said} only available using COPY FROM", position=at)
    if not bare and not words.at("("):
        raise InvalidArgument(
            f'argument to option "{name}" must be a list of column names', position=at
        )
    options[name] = _named_columns(words) if bare else _copied_columns(words)


def _old_options(words: Words, options: dict[str, Any], *, out: bool) -> None:
    while words.peek().kind != END and not words.at("where"):
        name = words.said()
        if name in ("csv", "header", "freeze"):
            words.advance()
            if name != "freeze":
                options[name] = True
        elif name in ("delimiter", "null", "quote", "escape"):
            words.advance()
            words.take("as")
            options[name] = _constant(words)
        elif name == "binary":
            words.advance()
            options[name] = True
        elif words.at("force", "not", "null") or words.at("force", "null"):
            at, said = words.position, words.said(1)
            for _ in range(3 if said == "not" else 2):
                words.advance()
            option = "force_not_null" if said == "not" else "force_null"
            _forced_columns(words, options, option, at, out=out, bare=True)
        elif name == "force" and words.said(1) == "quote":
            words.advance()
            words.advance()
            options["force_quote"] = None if words.take("*") else _named_columns(words)
        else:
            raise words.unexpected()


def _constant(words: Words) -> str:
    found = words.peek()
    if found.kind != STRING:
        raise words.unexpected()
    words.advance()
    return found.text
