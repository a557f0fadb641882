"""Goal: nothing that a stranger wrote steers the terminal of whoever looks at it.

Method: a text with every control character and every mark of writing direction, sent through each
way that a command has to show something.
"""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Callable

import pytest
from rich.text import Text

from leasehold.cli.output import Output
from leasehold.cli.sql_rows import CsvRows, JsonRows, TableRows
from leasehold.cli.terminal_text import (
    escape_control,
    escape_control_in_json,
    escape_control_in_lines,
)
from leasehold.pgwire.messages.backend import Field
from leasehold.values.declared import BY_NAME

OBEYED = "".join(
    chr(code) for code in range(0x3000) if unicodedata.category(chr(code)) == "Cc"
) + "".join(
    chr(code)
    for code in range(0x3000)
    if unicodedata.bidirectional(chr(code))
    in ("LRE", "RLE", "PDF", "LRO", "RLO", "LRI", "RLI", "FSI", "PDI")
)
EVIL = f"all\x1b]0;owned\x07\x1b[2K\x1b[1A is {OBEYED}well"
PLAIN = "Žluťoučký kůň [bold]→[/bold] 漢字 שלום"


def is_harmless(shown: str) -> bool:
    return not (set(shown) & set(OBEYED)) - {"\n"}


def shown_as_table(output: Output) -> None:
    output.table(["job", EVIL], [["7", EVIL], ["8", Text(escape_control(EVIL))]], "")


def shown_as_rows(output: Output) -> None:
    rows = TableRows(output)
    rows.begin([Field(EVIL, 0, 0, BY_NAME["text"].oid, -1, -1, 0)])
    rows.row([EVIL])
    rows.end()


@pytest.mark.parametrize(
    "show",
    [
        lambda output: output.line(EVIL),
        lambda output: output.note(EVIL),
        lambda output: output.error(EVIL),
        lambda output: output.json({EVIL: EVIL}),
        lambda output: output.table(["a"], [], EVIL),
        shown_as_table,
        shown_as_rows,
    ],
)
@pytest.mark.parametrize("terminal", [False, True])
def test_no_way_out_lets_control_characters_through(
    show: Callable[[Output], None], terminal: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    output = Output(as_json=False)
    output.out._force_terminal = output.err._force_terminal = terminal
    output.out.no_color = output.err.no_color = True
    show(output)
    told = capsys.readouterr()
    said = told.out + told.err
    assert "owned" in said
    # What rich itself writes (bold, dim) goes first: it is not the stranger's.
    for own in ("\x1b[1m", "\x1b[2m", "\x1b[0m"):
        said = said.replace(own, "")
    assert is_harmless(said), ascii(said)


def test_csv_is_exact_for_a_file_and_harmless_on_a_terminal(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    CsvRows().row([EVIL])
    assert capsys.readouterr().out == '"' + EVIL.replace('"', '""') + '"\n'
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    CsvRows().row([EVIL])
    assert is_harmless(capsys.readouterr().out)


def test_json_keeps_its_value(capsys: pytest.CaptureFixture[str]) -> None:
    rows = JsonRows()
    rows.begin([Field("c", 0, 0, BY_NAME["text"].oid, -1, -1, 0)])
    rows.row([EVIL + PLAIN])
    said = capsys.readouterr().out
    assert is_harmless(said)
    assert json.loads(said) == {"c": EVIL + PLAIN}
    assert json.loads(escape_control_in_json(json.dumps(EVIL, ensure_ascii=False))) == EVIL


def test_what_people_write_stays_as_it_is() -> None:
    assert escape_control(PLAIN) == PLAIN
    assert escape_control("a\tb\r\nc\x1b") == "a\\tb\\r\\nc\\x1b"
    assert escape_control_in_lines("a\nb\x1b") == "a\nb\\x1b"
