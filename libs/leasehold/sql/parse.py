"""Text → tokens, tokens → an expression's tree: the one place that calls sqlglot, with limits
before and positions after.

The tree is sqlglot's (PostgreSQL dialect) and is a proposal only: whoever reads it takes what it
knows node by node through `only`, so that a word nobody looked at is refused, never dropped.
Statements are read from the tokens, by `reader.py`.
"""

from __future__ import annotations

import logging
import re
from typing import Any, ClassVar, Final

from sqlglot import exp
from sqlglot.dialects.postgres import Postgres
from sqlglot.errors import ParseError, TokenError
from sqlglot.tokenizer_core import Token, TokenType

from leasehold.catalog.descriptor import NAME_BYTES_MAX
from leasehold.model.errors import FeatureNotSupported, OutOfRange, Refused, SyntaxInvalid
from leasehold.values.types import KNOWN, Type, type_with

STATEMENT_BYTES_MAX: Final = 65_536
NESTING_MAX: Final = 16  # parentheses and CASE; sqlglot descends some 15 frames for each
DEPTH_MAX: Final = 64  # levels of the tree; readers of it may recurse that far
SIGNS_MAX: Final = 16  # prefix operators in a row: each is a frame as well

# sqlglot logs a warning for each text that it keeps raw; here such a text is refused.
logging.getLogger("sqlglot").setLevel(logging.ERROR)


class _Tokenizer(Postgres.Tokenizer):
    """Also of a text that begins with EXPLAIN, SHOW, LOCK …, the rest of which is kept raw else."""

    COMMANDS: ClassVar[set[TokenType]] = set()


_POSTGRES: Final = Postgres()
_WITH_WORDS: Final = ("CAST", "EXTRACT", "OVERLAY", "POSITION", "SUBSTRING", "TRIM")
"""Functions with words among their arguments. All others are read as any function is, by the name
that stands there: sqlglot would make PostgreSQL's of other dialects' (UCASE, NVL)."""


class _Parser(_POSTGRES.parser_class):  # type: ignore[name-defined,misc]
    FUNCTIONS: ClassVar[dict[str, Any]] = {}
    FUNCTION_PARSERS: ClassVar[dict[str, Any]] = {
        name: _POSTGRES.parser_class.FUNCTION_PARSERS[name] for name in _WITH_WORDS
    }
    COLUMN_OPERATORS: ClassVar[dict[TokenType, Any]] = {
        **_POSTGRES.parser_class.COLUMN_OPERATORS,
        # The right side as it stands, not as a path of JSON.
        TokenType.ARROW: lambda self, left, right: self.validate_expression(
            exp.JSONExtract(this=left, expression=right)
        ),
        TokenType.DARROW: lambda self, left, right: self.validate_expression(
            exp.JSONExtractScalar(this=left, expression=right)
        ),
    }


_OPENING: Final = frozenset({TokenType.L_PAREN, TokenType.L_BRACKET, TokenType.CASE})
_CLOSING: Final = frozenset({TokenType.R_PAREN, TokenType.R_BRACKET, TokenType.END})
_FOREIGN: Final = frozenset({"!", "==", "<=>"})  # read by sqlglot as NOT, =, IS NOT DISTINCT FROM
_NEGATED: Final = frozenset({"~", "~*", "~~", "~~*"})
_BEFORE_NOT: Final = frozenset(
    {
        *(TokenType.IS, TokenType.AND, TokenType.OR, TokenType.NOT, TokenType.L_PAREN),
        *(TokenType.COMMA, TokenType.WHEN, TokenType.THEN, TokenType.ELSE),
    }
)
_PREFIX: Final = frozenset({TokenType.DASH, TokenType.PLUS, TokenType.NOT, TokenType.TILDE})

_TYPES: Final = {
    exp.DType.SMALLINT: "smallint",
    exp.DType.INT: "integer",
    exp.DType.BIGINT: "bigint",
    exp.DType.DECIMAL: "numeric",
    exp.DType.DOUBLE: "double precision",
    exp.DType.TEXT: "text",
    exp.DType.VARCHAR: "varchar",
    exp.DType.CHAR: "char",
    exp.DType.BPCHAR: "char",
    exp.DType.BOOLEAN: "boolean",
    exp.DType.VARBINARY: "bytea",
    exp.DType.DATE: "date",
    exp.DType.TIMESTAMP: "timestamp",
    exp.DType.TIMESTAMPTZ: "timestamptz",
    exp.DType.UUID: "uuid",
    exp.DType.JSONB: "jsonb",
    exp.DType.INTERVAL: "interval",
}
TYPE_NAMES: Final = ", ".join(KNOWN)


def tokens_of(text: str, bytes_max: int = STATEMENT_BYTES_MAX) -> list[Token]:
    """The tokens of one statement or expression, without closing semicolons.

    Raises SyntaxInvalid (position: characters from 1) for an empty text, an open quote, a second
    statement and two commas in a row; OutOfRange above `bytes_max` or NESTING_MAX.
    """
    first, *others = statements_of(text, bytes_max)
    if others:
        raise SyntaxInvalid(
            "one statement at a time: a second one follows here",
            position=text.index(";", int(first[-1].end)) + 1,
        )
    return first


def statements_of(text: str, bytes_max: int = STATEMENT_BYTES_MAX) -> list[list[Token]]:
    """The tokens of each statement between semicolons, at least one. Raises what `tokens_of` does,
    but for a second statement."""
    statements: list[list[Token]] = [[]]
    for token in _tokens(text, bytes_max):
        if token.token_type is TokenType.SEMICOLON:
            statements.append([])
        else:
            statements[-1].append(token)
    statements = [tokens for tokens in statements if tokens]
    if not statements:
        raise SyntaxInvalid("the text holds no statement", position=1)
    for tokens in statements:
        _check(tokens)
    return statements


def _tokens(text: str, bytes_max: int) -> list[Token]:
    size = len(text.encode(errors="replace"))
    if size > bytes_max:
        raise OutOfRange(f"the text has {size} bytes; at most {bytes_max} are read")
    for place, character in enumerate(text, start=1):
        if character == "\0" or "\ud800" <= character <= "\udfff":
            raise SyntaxInvalid("the text holds a character that is no text", position=place)
    try:
        return list(_Tokenizer(dialect=_POSTGRES).tokenize(text))
    except TokenError as error:
        raise SyntaxInvalid("a quote or a comment is not closed", position=len(text)) from error


def _check(tokens: list[Token]) -> None:
    depth = signs = 0
    before: Token | None = None
    for token, after in zip(tokens, (*tokens[1:], None), strict=True):
        kind = token.token_type
        depth += (kind in _OPENING) - (kind in _CLOSING)
        signs = signs + 1 if kind in _PREFIX else 0
        if depth > NESTING_MAX or signs > SIGNS_MAX:
            raise OutOfRange(
                f"nested more than {NESTING_MAX} deep", position=position_of_token(token)
            )
        # sqlglot reads over a missing element; PostgreSQL does not.
        after_comma = before is not None and before.token_type is TokenType.COMMA
        if after_comma and (kind is TokenType.COMMA or kind in _CLOSING):
            raise unexpected(token)
        foreign = token.text in _FOREIGN and kind not in (TokenType.STRING, TokenType.IDENTIFIER)
        if foreign and not _is_negated_operator(before, token, after):
            raise unexpected(token)
        before = token


def _is_negated_operator(before: Token | None, token: Token, after: Token | None) -> bool:
    """Is it the ! of !~, !~*, !~~ or !~~*, behind an operand?"""
    if before is None or after is None or token.text != "!":
        return False
    behind_operand = before.token_type not in _BEFORE_NOT | _PREFIX
    return behind_operand and after.text in _NEGATED and after.start == token.end + 1


def tree_of(text: str, tokens: list[Token]) -> exp.Expression:
    """The tree of the expression that already checked tokens of `text` spell.

    Raises SyntaxInvalid with the position, OutOfRange above DEPTH_MAX.
    """
    _check_tests(tokens)
    try:
        trees = _Parser(dialect=_POSTGRES).parse_into(exp.Condition, tokens, text)
    except ParseError as error:
        raise _syntax(text, error) from error
    except RecursionError as error:
        raise OutOfRange("the text is nested too deeply to be read") from error
    except (TypeError, AttributeError, LookupError, ValueError, AssertionError) as error:
        # The parser has defects of its own; a stranger's text that meets one must not end the
        # master.
        raise SyntaxInvalid("the text is not an expression that can be read", position=1) from error
    tree = trees[0] if len(trees) == 1 else None
    if not isinstance(tree, exp.Expression) or isinstance(tree, exp.Command):
        raise unexpected(tokens[0])
    _check_depth(tree)
    return tree


def _check_tests(tokens: list[Token]) -> None:
    """`a NOT NULL` is read by sqlglot as a test of a; PostgreSQL knows it with IS only."""
    for before, token, after in zip(tokens, tokens[1:], tokens[2:], strict=False):
        negated = token.token_type is TokenType.NOT and after.token_type is TokenType.NULL
        if negated and before.token_type not in _BEFORE_NOT:
            raise unexpected(token)


def _check_depth(tree: exp.Expression) -> None:
    """A chain like 1 + 1 + … has no parentheses and is deep all the same."""
    level: list[exp.Expression] = [tree]
    for _ in range(DEPTH_MAX):
        level = [child for node in level for child in node.iter_expressions()]
        if not level:
            return
    raise OutOfRange(f"the text is nested more than {DEPTH_MAX} deep", position=1)


def _syntax(text: str, error: ParseError) -> SyntaxInvalid:
    found = error.errors[0] if error.errors else {}
    line, column = found.get("line") or 1, found.get("col") or 1
    start = sum(len(part) for part in text.splitlines(keepends=True)[: line - 1])
    word = str(found.get("highlight") or "")
    position = max(1, start + column - len(word) + 1)
    near = f" at or near {word!r:.80}" if word else ""
    return SyntaxInvalid(f"syntax error{near}", position=position)


def unexpected(token: Token) -> SyntaxInvalid:
    return SyntaxInvalid(
        f"syntax error at or near {token.text!r:.80}", position=position_of_token(token)
    )


def position_of_token(token: Token) -> int:
    """Characters from the start of the text, from 1, as PostgreSQL counts them."""
    return int(token.start) + 1


def position_of(node: exp.Expression) -> int:
    """Where the first name inside a node stands; 1 where the tree does not know."""
    named = node.find_all(exp.Identifier, exp.Anonymous)
    starts = [int(n.meta["start"]) for n in named if "start" in n.meta]
    return min(starts, default=0) + 1


def only(node: exp.Expression, *known: str) -> None:
    """Refuse a node that says more than `known` (names of sqlglot's arguments).

    Raises FeatureNotSupported naming what else was said.
    """
    for name, value in node.args.items():
        if value not in (None, False, []) and name not in known:
            word = value.sql("postgres") if isinstance(value, exp.Expression) else name
            raise FeatureNotSupported(
                f"{word!r:.80} is not supported here", position=position_of(node)
            )


def name_of(node: object) -> str:
    """An identifier's name: lower-case unless quoted. Raises what `checked_name` raises."""
    if not isinstance(node, exp.Identifier):
        raise FeatureNotSupported("a plain name is expected here")
    name = str(node.this)
    quoted = bool(node.args.get("quoted"))
    return checked_name(name if quoted else name.lower(), position_of(node))


def checked_name(name: str, position: int) -> str:
    """Raises SyntaxInvalid for "", OutOfRange above NAME_BYTES_MAX."""
    if not name:
        raise SyntaxInvalid('zero-length delimited identifier at or near """"', position=position)
    size = len(name.encode(errors="replace"))
    if size > NAME_BYTES_MAX:
        raise OutOfRange(
            f"name {name!r:.100} has {size} bytes; at most {NAME_BYTES_MAX} are allowed",
            position=position,
        )
    return name


def place_of(error: Refused) -> int:
    """The position that a refusal names, 1 without one."""
    return int(str(error.detail.get("position", 1)))


def placed(error: Refused, position: int, prefix: str = "", **detail: object) -> Refused:
    """The same refusal, said at `position` of the text that was sent."""
    said = {**error.detail, **detail, "position": position}
    return type(error)(prefix + error.message, **said)


def type_of(node: exp.Expression) -> Type:
    """A type's name in a statement → Type. Raises FeatureNotSupported naming the known types."""
    assert isinstance(node, exp.DataType), node
    name = _TYPES.get(node.this)
    if name is None or node.args.get("nested"):
        raise FeatureNotSupported(
            f"type {node.sql('postgres')!r:.80} is not known; known are: {TYPE_NAMES}"
        )
    only(node, "this", "expressions")
    return type_with(name, [_modifier(each) for each in node.expressions])


def _modifier(node: exp.Expression) -> int:
    text = node.sql("postgres")
    if not re.fullmatch("-?[0-9]{1,9}", text):
        raise FeatureNotSupported(f"{text!r:.40} is no length or precision of a type")
    return int(text)
