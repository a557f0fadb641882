"""What commands print with `--json`, as the reference shows it."""

from __future__ import annotations

import json

from leasehold.cli.json_forms import ERROR, FORMS
from leasehold.cli.json_schema import DIALECT


def json_forms() -> str:
    """Return a JSON Schema for each command whose output has one, and that of an error."""
    parts = [f"### An error, of any command\n\n{_block(ERROR)}"]
    for name, form in FORMS.items():
        lines = "One value on each line." if form.each_line else "One value."
        parts.append(f"### leasehold {name}\n\n{lines}\n\n{_block(form.schema)}")
    return "\n\n".join(parts)


def _block(schema: object) -> str:
    assert isinstance(schema, dict), schema
    text = json.dumps({"$schema": DIALECT, **schema}, separators=(",", ":"), ensure_ascii=False)
    return f"```json\n{text}\n```"
