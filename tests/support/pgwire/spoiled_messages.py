"""Messages of a client, spoiled at random: bytes, lengths, bodies and their order."""

from __future__ import annotations

import random
import struct
from typing import Final

from tests.support.pgwire.wire_words import message

SIZES: Final = (0, 3, 4, 5, 8, 255, 10_000, 65_536, 2**24, 2**31 - 1, 2**31, 2**32 - 1)
"""What a message says that it is long."""


def spoil_message(chance: random.Random, parts: list[bytes], at: int) -> None:
    """Change one of some messages, or their number or order."""
    one = parts[at]
    where = chance.randrange(len(one) + 1)
    match chance.randrange(8):
        case 0:
            del parts[at]
        case 1:
            parts.insert(at, one)
        case 2:
            parts[at] = one[:where]
        case 3:
            parts[at] = one[:where] + chance.randbytes(chance.randrange(1, 9)) + one[where:]
        case 4:
            parts[at] = one[:1] + struct.pack("!I", chance.choice(SIZES)) + one[5:]
        case 5:
            parts[at] = one[:where] + chance.randbytes(1) + one[where + 1 :]
        case 6:
            other = chance.randrange(len(parts))
            parts[at], parts[other] = parts[other], parts[at]
        case 7 if len(one) >= 5:  # another body, whole
            body = chance.choice((b"", one[5:][::-1], one[5:] * 3, chance.randbytes(9), b"\0" * 9))
            parts[at] = message(one[:1], body)
