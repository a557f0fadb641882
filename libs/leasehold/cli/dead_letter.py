"""The command `leasehold dead-letter`: what could not be applied, why, and what one can do about
it."""

from __future__ import annotations

import argparse
import os
import shlex
import subprocess
import tempfile
from pathlib import Path
from typing import Any, Final

from leasehold.adapters.codec.json_text import json_text, parse_json
from leasehold.admin.dead_letters import (
    DeadLetters,
    advise,
    id_words,
    letter_report,
    readable_request,
)
from leasehold.cli.command import Subparsers, add, finish
from leasehold.cli.exit_code import ExitCode
from leasehold.cli.output import Output, clock_time, show_outcome
from leasehold.client.change_producer import ChangeProducer
from leasehold.model.errors import ConfigurationError, LeaseholdError
from leasehold.model.ids import format_request_id
from leasehold.replication.effects import NOWHERE
from leasehold.settings.client import ClientSettings

LISTED_MAX: Final = 50
RESULT_TIMEOUT_S: Final = 30.0


def register(subparsers: Subparsers) -> None:
    parser = add(subparsers, "dead-letter", list_letters)
    actions = parser.add_subparsers(metavar="ACTION")
    listed = actions.add_parser("list", help="list dead letters, newest last")
    listed.add_argument("--limit", type=int, default=LISTED_MAX, help="newest so many")
    finish(listed, list_letters)
    explained = actions.add_parser("explain", help="one dead letter in full, and what helps")
    explained.add_argument("id", help="request id, or offset in the dead-letter topic")
    finish(explained, explain)
    again = actions.add_parser("resubmit", help="send it again as a new request (under a fresh id)")
    again.add_argument("id", help="request id, or offset in the dead-letter topic")
    again.add_argument("--edit", action="store_true", help="change it first, in $EDITOR")
    finish(again, resubmit)


def list_letters(args: argparse.Namespace, settings: ClientSettings, output: Output) -> int:
    letters = DeadLetters(settings).read()[-getattr(args, "limit", LISTED_MAX) :]
    if output.as_json:
        output.json([letter_report(offset, letter) for offset, letter in letters])
        return ExitCode.OK
    output.table(
        [">offset", "request", "when", "code", "message"],
        [
            [
                str(offset),
                id_words(letter),
                clock_time(letter.decided_us),
                letter.code,
                letter.message[:120],
            ]
            for offset, letter in letters
        ],
        "no dead letter: everything submitted was committed or refused to its sender",
    )
    return ExitCode.OK


def explain(args: argparse.Namespace, settings: ClientSettings, output: Output) -> int:
    found = DeadLetters(settings).find(args.id)
    if found is None:
        output.error(f"there is no dead letter {args.id!r}")
        return ExitCode.NOT_RIGHT
    offset, letter = found
    told = {**letter_report(offset, letter), "advice": advise(letter.code)}
    if output.as_json:
        output.json(told)
        return ExitCode.OK
    output.line(f"request {told['id']}, attempt {letter.attempt}", "bold")
    output.line(f"refused  {clock_time(letter.decided_us)} with {letter.code}")
    output.line(f"because  {letter.message}", "yellow")
    if letter.principal:
        output.line(f"asked by {letter.principal}")
    for name, value in letter.detail.items():
        output.line(f"  {name}: {value}")
    stood = "at no offset of" if letter.offset == NOWHERE else f"at offset {letter.offset} of"
    output.line(f"stood {stood} {letter.queue}", "dim")
    output.line()
    output.line(json_text(told["request"], indent=2))
    output.line()
    output.line(f"{told['advice']} (leasehold dead-letter resubmit {args.id} --edit)")
    return ExitCode.OK


def resubmit(args: argparse.Namespace, settings: ClientSettings, output: Output) -> int:
    found = DeadLetters(settings).find(args.id)
    if found is None:
        output.error(f"there is no dead letter {args.id!r}")
        return ExitCode.NOT_RIGHT
    fields = readable_request(found[1])
    if args.edit:
        fields = _edit(fields)
    if not isinstance(fields, dict):
        output.error("it is no object with fields; --edit lets you write one")
        return ExitCode.NOT_RIGHT
    # Its old id has its answer for ever (L5): a new try is a new request.
    request = {k: v for k, v in fields.items() if k not in ("id", "attempt", "give_up")}
    with ChangeProducer(settings) as changes:
        pending = changes.submit(request)
        outcome = pending.result(RESULT_TIMEOUT_S)
    name = format_request_id(pending.request_id)
    words = f"committed at LSN {outcome.lsn:,} as request {name}"
    return show_outcome(outcome, output, lambda: words, "green", id=name)


def _edit(fields: Any) -> Any:
    editor = os.environ.get("VISUAL") or os.environ.get("EDITOR")
    if not editor:
        raise ConfigurationError("no editor is set: set EDITOR, e.g. EDITOR=nano")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "request.json"
        path.write_text(json_text(fields, indent=2), "utf-8")
        done = subprocess.run([*shlex.split(editor), str(path)], check=False)
        if done.returncode != 0:
            raise LeaseholdError(f"{editor} ended with {done.returncode}; nothing was sent")
        try:
            return parse_json(path.read_text("utf-8"))
        except ValueError as error:
            raise LeaseholdError(f"what was edited is no JSON: {error}; nothing was sent") from None
