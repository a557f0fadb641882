"""A source of events that is not ours: its rows, and what it says of them in Debezium's envelope;
and an intake as a process."""

from __future__ import annotations

import io
import json
import os
import random
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from decimal import Decimal
from pathlib import Path
from typing import Any, Final

import fastavro

ROOT: Final = Path(__file__).resolve().parents[3]
ROW: Final[Any] = {
    "type": "record",
    "name": "Value",
    "namespace": "shop.public.orders",
    "fields": [
        {"name": "id", "type": "long"},
        {"name": "n", "type": ["null", "int"], "default": None},
        {
            "name": "price",
            "type": {
                "type": "bytes",
                "scale": 2,
                "precision": 9,
                "connect.version": 1,
                "connect.parameters": {"scale": "2"},
                "connect.name": "org.apache.kafka.connect.data.Decimal",
                "logicalType": "decimal",
            },
        },
        {
            "name": "made",
            "type": {
                "type": "long",
                "connect.version": 1,
                "connect.name": "io.debezium.time.MicroTimestamp",
            },
        },
    ],
}
ENVELOPE: Final[Any] = {
    "type": "record",
    "name": "Envelope",
    "namespace": "shop.public.orders",
    "fields": [
        {"name": "before", "type": ["null", ROW], "default": None},
        {"name": "after", "type": ["null", "Value"], "default": None},
        {"name": "op", "type": "string"},
    ],
}
ENVELOPE_TEXT: Final = json.dumps(ENVELOPE)
_PARSED: Final = fastavro.parse_schema(ENVELOPE)
MADE_US: Final = 1_790_000_000_000_000


class ForeignSource:
    """Rows by id as (n, cents), and the (key, value) of each change, in its order."""

    def __init__(self, seed: int, schema_id: int | None = None) -> None:
        """`schema_id`: of the envelope in a registry; None: JSON without schemas."""
        self.random = random.Random(seed)
        self.rows: dict[int, tuple[int | None, int]] = {}
        self._schema_id = schema_id

    def change(self, keys: int) -> tuple[bytes, bytes]:
        """Change a row, and return the message that says so."""
        number = self.random.randrange(keys)
        there = self.rows.get(number)
        new = (self.random.choice([None, *range(50)]), self.random.randrange(-99_999, 99_999))
        if there is not None and self.random.random() < 0.25:
            del self.rows[number]
            return self._key(number), self._value("d", number, there, None)
        self.rows[number] = new
        op = "c" if there is None else "u"
        return self._key(number), self._value(op, number, there, new)

    def _key(self, number: int) -> bytes:
        return json.dumps({"id": number}).encode()

    def _value(self, op: str, number: int, before: Any, after: Any) -> bytes:
        body = {
            "before": self._row(number, before),
            "after": self._row(number, after),
            "op": op,
        }
        if self._schema_id is None:
            return json.dumps({**body, "source": {"db": "shop"}, "ts_ms": 1}).encode()
        file = io.BytesIO()
        fastavro.schemaless_writer(file, _PARSED, body)
        return b"\x00" + self._schema_id.to_bytes(4, "big") + file.getvalue()

    def _row(self, number: int, row: tuple[int | None, int] | None) -> Any:
        if row is None:
            return None
        n, cents = row
        price: Any = f"{cents / 100:.2f}"
        if self._schema_id is not None:
            price = Decimal(cents).scaleb(-2)
        return {"id": number, "n": n, "price": price, "made": MADE_US + number}


@contextmanager
def intake(
    environ: Mapping[str, str], folder: Path, *, name: str = "intake", **settings: str
) -> Iterator[subprocess.Popen[bytes]]:
    """An intake process; killed without notice at the end of the block. `settings`: by the ends of
    their names, `routes`, `verify` …"""
    environment = {
        **os.environ,
        **environ,
        "PYTHONPATH": f"{ROOT}{os.pathsep}{ROOT / 'libs'}",
        "LEASEHOLD_READY_FILE": str(folder / "ready"),
        # Small transactions, so that there are many places to die in.
        "LEASEHOLD_INTAKE_EVENTS_MAX": "20",
        "LEASEHOLD_INTAKE_LINGER_MS": "5",
        "LEASEHOLD_INTAKE": name,
        **{f"LEASEHOLD_INTAKE_{name.upper()}": value for name, value in settings.items()},
    }
    with (folder / "intake.log").open("ab") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "services.intake.main"],
            env=environment,
            cwd=ROOT,
            stdout=log,
            stderr=log,
        )
        try:
            yield process
        finally:
            process.kill()
            process.wait()
