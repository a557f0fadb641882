"""Holds what a command has printed with `--json` to the JSON Schemas that document it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, Final

from jsonschema import Draft202012Validator

from leasehold.cli.json_forms import ERROR, FORMS
from leasehold.cli.json_schema import Form

WITHOUT_FORM: Final = frozenset({"dev"})
"""It answers lines that are typed, each in its own way."""


def form_of(words: Sequence[str]) -> Form | None:
    """Return the form of what these words behind `leasehold` print, None: none is documented."""
    plain = [word for word in words if not word.startswith("-")]
    for count in (2, 1):
        found = FORMS.get(" ".join(plain[:count]))
        if found is not None:
            return found
    return None


def wrong(name: str, value: Any) -> list[str]:
    """What of a value is not as the schema of a command says."""
    found = Draft202012Validator(FORMS[name].schema).iter_errors(value)
    return [f"{name} {error.json_path}: {error.message[:200]}" for error in found]


def check_printed(words: Sequence[str], printed: str) -> list[Any]:
    """Check that each line is as documented, or an error, and return what they say."""
    values = [json.loads(line) for line in printed.splitlines()]
    form = form_of(words)
    if "--json" not in words or "--format" in words or (form is None and words[0] in WITHOUT_FORM):
        return values
    assert form is not None, f"what leasehold {' '.join(words)} prints is not documented"
    is_one = Draft202012Validator({"anyOf": [form.schema, ERROR]}).is_valid
    for value in values:
        if not is_one(value):
            Draft202012Validator(form.schema).validate(value)
    errors = [value for value in values if Draft202012Validator(ERROR).is_valid(value)]
    assert form.each_line or len(values) - len(errors) <= 1, "one value, and an error perhaps"
    return values
