"""How the rows of COPY are written, FROM STDIN and TO STDOUT."""

from __future__ import annotations

from dataclasses import dataclass

from leasehold.model.errors import FeatureNotSupported, InvalidArgument, SyntaxInvalid


@dataclass(frozen=True, slots=True)
class CopyFormat:
    """Raises InvalidArgument, SyntaxInvalid and FeatureNotSupported for options that do not go
    together, as PostgreSQL does. `header_matches`: it has to name the columns, in their order.
    `force_quote`: columns whose values are quoted always; None: all of them. `force_null`: where a
    quoted NULL is one, too; `force_not_null`: where an unquoted one is none."""

    csv: bool = False
    binary: bool = False
    delimiter: str = ""
    null: str | None = None
    header: bool = False
    header_matches: bool = False
    quote: str = '"'
    escape: str = ""
    force_quote: frozenset[str] | None = frozenset()
    force_null: frozenset[str] = frozenset()
    force_not_null: frozenset[str] = frozenset()

    def __post_init__(self) -> None:
        if self.binary:
            self._check_binary()
        if self.force_quote != frozenset() and not self.csv:
            raise FeatureNotSupported("COPY force quote available only in CSV mode")
        if self.force_not_null and not self.csv:
            raise FeatureNotSupported("COPY force not null available only in CSV mode")
        if self.force_null and not self.csv:
            raise FeatureNotSupported("COPY force null available only in CSV mode")
        given = object.__setattr__
        given(self, "delimiter", self.delimiter or ("," if self.csv else "\t"))
        given(self, "escape", self.escape or self.quote)
        if self.null is None:
            given(self, "null", "" if self.csv else "\\N")
        assert self.null is not None
        one = (("delimiter", self.delimiter), ("quote", self.quote), ("escape", self.escape))
        for name, text in one:
            if len(text.encode()) != 1:
                raise FeatureNotSupported(f"COPY {name} must be a single one-byte character")
        if self.delimiter in "\r\n" or self.null != self.null.translate({10: None, 13: None}):
            raise InvalidArgument("COPY delimiter and null can't hold newline or carriage return")
        if not self.csv and self.delimiter in "\\.abcdefghijklmnopqrstuvwxyz0123456789":
            raise InvalidArgument(f'COPY delimiter cannot be "{self.delimiter}"')
        if not self.csv and (self.quote != '"' or self.escape != '"'):
            raise FeatureNotSupported("COPY quote and escape are available only in CSV mode")
        if self.csv and self.delimiter == self.quote:
            raise InvalidArgument("COPY delimiter and quote must be different")
        if self.delimiter in self.null:
            raise InvalidArgument("COPY delimiter must not appear in the NULL specification")
        if self.csv and self.quote in self.null:
            raise InvalidArgument("CSV quote character must not appear in the NULL specification")

    def _check_binary(self) -> None:
        if self.header:
            raise FeatureNotSupported("cannot specify HEADER in BINARY mode")
        for name, given in (("DELIMITER", self.delimiter), ("NULL", self.null)):
            if given:
                raise SyntaxInvalid(f"cannot specify {name} in BINARY mode")
