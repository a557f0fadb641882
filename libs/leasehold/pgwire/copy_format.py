"""How the rows of COPY … FROM STDIN are written."""

from __future__ import annotations

from dataclasses import dataclass

from leasehold.model.errors import FeatureNotSupported, InvalidArgument


@dataclass(frozen=True, slots=True)
class CopyFormat:
    """Raises InvalidArgument for options that do not go together, as PostgreSQL does."""

    csv: bool = False
    delimiter: str = ""
    null: str | None = None
    header: bool = False
    quote: str = '"'
    escape: str = ""

    def __post_init__(self) -> None:
        given = object.__setattr__
        given(self, "delimiter", self.delimiter or ("," if self.csv else "\t"))
        given(self, "escape", self.escape or self.quote)
        if self.null is None:
            given(self, "null", "" if self.csv else "\\N")
        assert self.null is not None
        one = (("delimiter", self.delimiter), ("quote", self.quote), ("escape", self.escape))
        for name, text in one:
            if len(text.encode()) != 1:
                raise InvalidArgument(f"COPY {name} must be a single one-byte character")
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
