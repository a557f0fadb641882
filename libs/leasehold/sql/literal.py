"""DEFAULT's expression → the storage value that is kept: only a constant can be one."""

from __future__ import annotations

from typing import Any

from sqlglot.tokenizer_core import Token, TokenType

from leasehold.model.errors import FeatureNotSupported
from leasehold.schema.descriptor import Column
from leasehold.schema.types import Type
from leasehold.sql.compiler import Compiler
from leasehold.sql.parse import check_functions, position_of_token, tokens_of, tree_of
from leasehold.sql.typed import Typed, assigned
from leasehold.sql.words import VOLATILE


def default_value(text: str, kind: Type) -> Any:
    """The storage value that `text` gives in a column of `kind`; None for NULL.

    Raises FeatureNotSupported for what is no constant, WrongType for one of another type,
    SyntaxInvalid, DivisionByZero, InvalidText, OutOfRange and TooLong as the expression and the
    type say; positions count in `text`.
    """
    return assigned(_constant(text), kind)({})


def check_constant(text: str) -> None:
    """Refuses what no column could have as its default; raises what `default_value` raises."""
    _constant(text)


def _constant(text: str) -> Typed:
    tokens = tokens_of(text)
    _refuse_volatile(tokens)
    tree = tree_of(text, tokens)
    check_functions(text, tree)
    return Compiler(_no_column, "").part(tree)


def _refuse_volatile(tokens: list[Token]) -> None:
    """Raises FeatureNotSupported for a word that gives another value each time."""
    for token in tokens:
        quoted = token.token_type in (TokenType.STRING, TokenType.IDENTIFIER)
        if not quoted and token.text.lower() in VOLATILE:
            raise FeatureNotSupported(
                f"{token.text!r:.40} gives another value each time: only a constant can be a"
                " default",
                position=position_of_token(token),
            )


def _no_column(name: str) -> Column:
    raise FeatureNotSupported(
        f"only a constant can be a default: the column {name!r:.80} can't be used in it"
    )
