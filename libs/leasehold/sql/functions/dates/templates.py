"""to_char of a moment, to_date and to_timestamp, for a stated set of patterns.

Written: Y,YYY YYYY YYY YY Y, IYYY, MM, MONTH Month month, MON Mon mon, DD, DDD, D, ID, DAY Day day,
DY Dy dy, HH HH12 HH24, MI, SS, MS, US, SSSS, AM PM am pm A.M. P.M. a.m. p.m., Q, WW, IW, W, CC, J,
TZ tz TZH TZM OF, each with FM before or TH th behind it, and text in quotes. Read: YYYY, MM, MON,
MONTH, DD, DDD, HH, HH12, HH24, MI, SS, MS, US, AM PM, J. Any other letter is refused (0A000).
"""

from __future__ import annotations

import re
from datetime import date
from functools import lru_cache
from typing import Final, NamedTuple
from zoneinfo import ZoneInfo

from leasehold.model.budget import charge_each
from leasehold.model.errors import (
    FeatureNotSupported,
    InvalidMoment,
    MomentOutOfRange,
    TooComplex,
)
from leasehold.sql.functions.dates.arithmetic import days_in_month, fields_of
from leasehold.values.dates import DAY_LEAST, DAY_MOST, DAY_US, date_of, day_of, is_infinite
from leasehold.values.letters import BLANKS, ascii_lower, ascii_upper, is_letter_or_digit
from leasehold.values.time_zone import abbreviation_at, local_of, offset_at

_MONTHS: Final = (
    *("January", "February", "March", "April", "May", "June", "July", "August", "September"),
    *("October", "November", "December"),
)
_DAYS: Final = ("Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday")
_NAMES: Final = (
    *("MONTH", "Month", "month", "MON", "Mon", "mon", "DAY", "Day", "day", "DY", "Dy", "dy"),
    *("AM", "PM", "am", "pm", "A.M.", "P.M.", "a.m.", "p.m."),
    *("TZ", "tz", "TZH", "TZM", "OF"),
)
_ZONES: Final = frozenset({"TZ", "tz", "TZH", "TZM", "OF"})
_NUMBERS: Final = (
    *(
        "Y,YYY",
        "YYYY",
        "YYY",
        "YY",
        "Y",
        "IYYY",
        "MM",
        "DDD",
        "DD",
        "D",
        "ID",
        "HH24",
        "HH12",
        "HH",
        "MI",
    ),
    *("SSSSS", "SSSS", "SS", "MS", "US", "Q", "WW", "IW", "W", "CC", "J"),
)
_PIECE: Final = re.compile(
    r'"(?P<quoted>[^"]*)"|(?P<fill>FM|fm)?(?P<word>'
    + "|".join(re.escape(word) for word in sorted(_NAMES, key=len, reverse=True))
    + "|(?i:"
    + "|".join(sorted(_NUMBERS, key=len, reverse=True))
    + r"))(?P<ordinal>TH|th)?|(?P<other>[^A-Za-z]|\\.)"
)


class _Piece(NamedTuple):
    """A piece of a template; with `word` "" its text stands as it is."""

    word: str
    text: str
    bare: bool = False
    ordinal: str = ""


TEMPLATE_MAX: Final = 8_192
"""Characters, each of which may be a pattern."""
_PIECE_WORK: Final = 600


@lru_cache(maxsize=512)
def _pieces(template: str) -> tuple[_Piece, ...]:
    if len(template) > TEMPLATE_MAX:
        raise TooComplex(f"a template has at most {TEMPLATE_MAX} characters")
    made = []
    position = 0
    while position < len(template):
        found = _PIECE.match(template, position)
        if found is None:
            raise FeatureNotSupported(
                f"the pattern {template[position : position + 12]!r} of a template is not supported"
            )
        position = found.end()
        word = found["word"]
        if word is None:
            text = found["quoted"] if found["quoted"] is not None else found["other"]
            made.append(_Piece("", text))
        else:
            name = word if word in _NAMES else ascii_upper(word)
            made.append(_Piece(name, word, bool(found["fill"]), found["ordinal"] or ""))
    return tuple(made)


def timestamp_text(timestamp: int, template: str, zone: ZoneInfo | None = None) -> str | None:
    """Return a moment as the clocks of `zone` show it; None is for a timestamp, which has no zone.
    An infinite one has no text. Raises FeatureNotSupported for an unknown pattern."""
    if is_infinite(timestamp):
        return None
    local = timestamp if zone is None else local_of(timestamp, zone)
    pieces = charge_each(_pieces(template), _PIECE_WORK)
    return "".join(_written(piece, local, timestamp, zone) for piece in pieces)


def _written(piece: _Piece, local: int, timestamp: int, zone: ZoneInfo | None) -> str:
    if not piece.word:
        return piece.text
    if piece.word in _ZONES:
        return _zone_name(piece.word, timestamp, zone)
    if piece.word in _NAMES:
        return _name(piece, local)
    return _digits(piece, local)


def _zone_name(word: str, timestamp: int, zone: ZoneInfo | None) -> str:
    if word in ("TZ", "tz"):
        name = "" if zone is None else abbreviation_at(timestamp, zone)
        return ascii_upper(name) if word == "TZ" else ascii_lower(name)
    ahead = 0 if zone is None else offset_at(timestamp, zone)
    minutes = abs(ahead) // 60
    sign, hours, rest = "-" if ahead < 0 else "+", minutes // 60, minutes % 60
    match word:
        case "TZH":
            return f"{sign}{hours:02}"
        case "TZM":
            return f"{rest:02}"
    return f"{sign}{hours:02}" + (f":{rest:02}" if rest else "")


def _digits(piece: _Piece, timestamp: int) -> str:
    number, width = _number(piece.word, timestamp)
    text = str(number) if piece.bare else str(number).rjust(width, "0")
    if piece.word == "Y,YYY":
        text = f"{number // 1_000},{number % 1_000:03}"
    if piece.ordinal:
        ending = _ordinal(number)
        text += ascii_upper(ending) if piece.ordinal == "TH" else ending
    return text


def _ordinal(number: int) -> str:
    if 10 < number % 100 < 20:
        return "th"
    return {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")


def _number(word: str, timestamp: int) -> tuple[int, int]:
    """The number that a pattern stands for, and its digits."""
    at = fields_of(timestamp)
    day = date_of(timestamp // DAY_US)
    iso = day.isocalendar()
    year_day = day.timetuple().tm_yday
    seconds = timestamp % DAY_US // 1_000_000
    numbers: dict[str, tuple[int, int]] = {
        "Y,YYY": (at.year, 4),
        "YYYY": (at.year, 4),
        "YYY": (at.year % 1_000, 3),
        "YY": (at.year % 100, 2),
        "Y": (at.year % 10, 1),
        "IYYY": (iso.year, 4),
        "MM": (at.month, 2),
        "DDD": (year_day, 3),
        "DD": (at.day, 2),
        "D": (day.isoweekday() % 7 + 1, 1),
        "ID": (day.isoweekday(), 1),
        "HH24": (at.hour, 2),
        "HH12": (at.hour % 12 or 12, 2),
        "HH": (at.hour % 12 or 12, 2),
        "MI": (at.minute, 2),
        "SS": (at.second, 2),
        "SSSS": (seconds, 1),
        "SSSSS": (seconds, 1),
        "MS": (at.microsecond // 1_000, 3),
        "US": (at.microsecond, 6),
        "Q": ((at.month + 2) // 3, 1),
        "WW": ((year_day - 1) // 7 + 1, 2),
        "IW": (iso.week, 2),
        "W": ((at.day - 1) // 7 + 1, 1),
        "CC": ((at.year + 99) // 100, 2),
        "J": (timestamp // DAY_US + 2_440_588, 1),
    }
    return numbers[word]


def _name(piece: _Piece, timestamp: int) -> str:
    at, word = fields_of(timestamp), piece.word
    capitals = ascii_upper(word)
    if capitals in ("AM", "PM", "A.M.", "P.M."):
        half = "AM" if at.hour < 12 else "PM"
        shown = half if "." not in word else f"{half[0]}.{half[1]}."
        return shown if word == capitals else ascii_lower(shown)
    if capitals in ("MONTH", "MON"):
        name = _MONTHS[at.month - 1]
    else:
        name = _DAYS[date_of(timestamp // DAY_US).isoweekday() % 7]
    short = capitals in ("MON", "DY")
    name = name[:3] if short else name
    if word == capitals:
        name = ascii_upper(name)
    elif word == ascii_lower(word):
        name = ascii_lower(name)
    return name if short or piece.bare else name.ljust(9)


# ------------------------------------------------------------------ reading

_READ_DIGITS: Final = {
    "YYYY": 4,
    "MM": 2,
    "DDD": 3,
    "DD": 2,
    "HH24": 2,
    "HH12": 2,
    "HH": 2,
    "MI": 2,
    "SS": 2,
    "MS": 3,
    "US": 6,
    "J": 7,
}


def _read(text: str, template: str) -> dict[str, int]:
    """The numbers that the patterns met. Raises InvalidMoment (22007)."""
    found: dict[str, int] = {}
    position = 0
    pieces = _pieces(template)
    for number, piece in enumerate(charge_each(pieces, _PIECE_WORK)):
        if not piece.word:
            if piece.text and not piece.text.strip(BLANKS):
                while position < len(text) and text[position] in BLANKS:
                    position += 1
            elif position < len(text) and not is_letter_or_digit(text[position]):
                position += 1
            continue
        while position < len(text) and text[position] in BLANKS:
            position += 1
        follows = number + 1 < len(pieces) and bool(pieces[number + 1].word)
        position = _read_one(piece, text, position, found, exactly=follows)
    return found


def _read_one(
    piece: _Piece, text: str, position: int, found: dict[str, int], *, exactly: bool
) -> int:
    word = piece.word
    capitals = ascii_upper(word)
    if capitals in ("AM", "PM", "A.M.", "P.M."):
        spelled = ascii_upper(text[position : position + len(word)])
        if spelled.replace(".", "") not in ("AM", "PM"):
            raise InvalidMoment(f'invalid value "{spelled:.20}" for "{piece.text}"')
        found["PM"] = int(spelled[0] == "P")
        return position + len(word)
    if capitals in ("MON", "MONTH"):
        for month, name in enumerate(_MONTHS, start=1):
            spelled = name[:3] if capitals == "MON" else name
            if ascii_lower(text[position : position + len(spelled)]) == ascii_lower(spelled):
                found["MM"] = month
                return position + len(spelled)
        raise InvalidMoment(f'invalid value "{text[position : position + 9]}" for "{piece.text}"')
    digits = _READ_DIGITS.get(word)
    if digits is None:
        raise FeatureNotSupported(f"the pattern {piece.text!r} can't be read, only written")
    most = digits if exactly or word != "YYYY" else 9
    read = re.compile(rf"[+-]?[0-9]{{1,{most}}}").match(text, position)
    if read is None:
        if position >= len(text):
            return position
        raise InvalidMoment(
            f'invalid value "{text[position : position + digits]}" for "{piece.text}"'
        )
    value = read[0]
    if word in ("MS", "US"):
        value = value.ljust(digits, "0")
    found[word] = int(value)
    return read.end()


def _day(found: dict[str, int], text: str) -> int:
    if "J" in found:
        day = found["J"] - 2_440_588
        if not DAY_LEAST <= day <= DAY_MOST:
            raise _out_of_range(text)
        return day
    year, month = found.get("YYYY", 1), found.get("MM", 1)
    try:
        if "DDD" in found:
            last = 366 if days_in_month(year, 2) == 29 else 365
            if not 1 <= found["DDD"] <= last:
                raise _out_of_range(text)
            return day_of(date(year, 1, 1)) + found["DDD"] - 1
        return day_of(date(year, month, found.get("DD", 1)))
    except ValueError as error:
        raise _out_of_range(text) from error


def _out_of_range(text: str) -> MomentOutOfRange:
    return MomentOutOfRange(f'date/time field value out of range: "{text:.80}"')


def date_by_template(text: str, template: str) -> int:
    """Raises InvalidMoment (22007), MomentOutOfRange (22008), FeatureNotSupported (0A000)."""
    return _day(_read(text, template), text)


def timestamp_by_template(text: str, template: str) -> int:
    found = _read(text, template)
    hour = found.get("HH24", 0)
    half = found.get("HH12", found.get("HH"))
    if half is not None:
        if not 1 <= half <= 12:
            raise InvalidMoment(f'hour "{half}" is invalid for the 12-hour clock')
        hour = half % 12 + 12 * found.get("PM", 0)
    minute, second = found.get("MI", 0), found.get("SS", 0)
    if hour > 23 or minute > 59 or second > 59:
        raise _out_of_range(text)
    rest = ((hour * 60 + minute) * 60 + second) * 1_000_000
    rest += found.get("MS", 0) * 1_000 + found.get("US", 0)
    return _day(found, text) * DAY_US + rest
