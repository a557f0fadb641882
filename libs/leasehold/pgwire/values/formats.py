"""Formats of a statement's parameters and of its result: checked, described, made once and kept."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple
from zoneinfo import ZoneInfo

from leasehold.model.errors import FeatureNotSupported, InvalidArgument, LeaseholdError
from leasehold.pgwire.messages import backend
from leasehold.pgwire.messages.backend import Field
from leasehold.pgwire.session import Column
from leasehold.pgwire.values.decoding import Decoder, make_decoder
from leasehold.pgwire.values.encoding import BINARY, TEXT, make_encoder, make_row_encoder
from leasehold.pgwire.wire_errors import InvalidBinary, ProtocolViolation
from leasehold.values.oids import (
    UNKNOWN_OID,
    UNSPECIFIED,
    WireType,
    may_be_made,
    modifier_of,
    oid_of,
    size_of,
    type_of_oid,
)

Formats = tuple[int, ...]
ALL_TEXT: Final[Formats] = ()
ALL_BINARY: Final[Formats] = (BINARY,)


class ResultForm(NamedTuple):
    """How the rows of a result are said. `description` is the RowDescription, and `row` makes a
    DataRow of a row's storage values. For COPY … TO STDOUT (`copies`) they are CopyOutResponse and
    CopyData, and `last` gives what is said behind the last row."""

    description: bytes
    row: Callable[[Sequence[Any]], bytes]
    last: Callable[[], bytes] = bytes
    copies: bool = False


def types_of_oids(oids: Sequence[int]) -> list[WireType | None]:
    """Return the types that a client named, None where it left one open. Raises
    FeatureNotSupported."""
    types: list[WireType | None] = []
    for number, oid in enumerate(oids, 1):
        kind = type_of_oid(oid)
        # The labels of an enum type are known to the statement alone.
        if kind is None and oid not in (UNSPECIFIED, UNKNOWN_OID) and not may_be_made(oid):
            raise FeatureNotSupported(
                f"parameter ${number} is given as the type with oid {oid}, which is not supported",
                hint="Give it as another type, or leave its type open (oid 0).",
            )
        types.append(kind)
    return types


def describe_parameters(types: Sequence[WireType]) -> bytes:
    return backend.parameter_description([oid_of(kind) for kind in types])


def describe_columns(columns: Sequence[Column], formats: Formats) -> bytes:
    """Return the RowDescription. Raises ProtocolViolation, InvalidArgument."""
    forms = _expand_formats(formats, len(columns), "result formats", "query has", "columns")
    return backend.row_description(
        [
            Field(
                column.name,
                column.table,
                column.position,
                oid_of(column.type),
                size_of(column.type),
                modifier_of(column.type),
                form,
            )
            for column, form in zip(columns, forms, strict=True)
        ]
    )


def make_result_form(columns: Sequence[Column], formats: Formats, zone: ZoneInfo) -> ResultForm:
    """Return how rows are said. Raises ProtocolViolation, InvalidArgument; FeatureNotSupported for
    a type without a form."""
    description = describe_columns(columns, formats)
    forms = _expand_formats(formats, len(columns), "result formats", "query has", "columns")
    encoders = [make_encoder(c.type, form, zone) for c, form in zip(columns, forms, strict=True)]
    return ResultForm(description, make_row_encoder(encoders))


def make_decoders(types: Sequence[WireType], formats: Formats, zone: ZoneInfo) -> list[Decoder]:
    forms = _expand_formats(formats, len(types), "parameter formats", "", "parameters")
    return [make_decoder(kind, form, zone) for kind, form in zip(types, forms, strict=True)]


def decode_values(decoders: Sequence[Decoder], values: Sequence[bytes | None]) -> list[Any]:
    """Return the storage values of parameters; an error says which one."""
    made: list[Any] = []
    for read, value in zip(decoders, values, strict=True):
        try:
            made.append(None if value is None else read(value))
        except InvalidBinary as error:
            error.message = f"{error.message}, in bind parameter {len(made) + 1}"
            raise
        except LeaseholdError as error:
            error.detail = {**error.detail, "where": f"parameter ${len(made) + 1}"}
            raise
    return made


def _expand_formats(formats: Formats, count: int, what: str, whose: str, of: str) -> Sequence[int]:
    """A format for each of `count` values: none given is text, one is meant for all."""
    if not formats:
        return [TEXT] * count
    if not set(formats) <= {TEXT, BINARY}:
        wrong = next(form for form in formats if form not in (TEXT, BINARY))
        raise InvalidArgument(f"unsupported format code: {wrong}")
    if len(formats) == 1:
        return list(formats) * count
    if len(formats) != count:
        has = f"{whose} {count}" if whose else str(count)
        raise ProtocolViolation(f"bind message has {len(formats)} {what} but {has} {of}")
    return formats
