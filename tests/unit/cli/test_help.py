"""Every command's help can be read on a terminal of 80 columns: a sentence, then paragraphs."""

from __future__ import annotations

import pytest

from leasehold.cli.command import SUMMARIES, wrap_paragraphs
from leasehold.cli.main import main


@pytest.mark.parametrize("command", SUMMARIES)
def test_a_command_says_in_a_line_what_it_does(
    command: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Goal: usage, a blank line, one sentence, a blank line; no paragraph is wider than 80."""
    monkeypatch.setenv("COLUMNS", "80")
    with pytest.raises(SystemExit) as ended:
        main([command, "--help"])
    assert ended.value.code == 0
    shown = capsys.readouterr().out
    usage, sentence, *rest = shown.split("\n\n")
    assert usage.startswith("usage: leasehold")
    summary = SUMMARIES[command]
    assert sentence == f"{summary[0].upper()}{summary[1:]}."
    assert [
        line for line in "\n".join(rest).splitlines() if line[:1] != " " and len(line) > 80
    ] == []


def test_indented_lines_stay_as_they_are() -> None:
    typed = '  leasehold sql -c "COPY t FROM STDIN CSV" < a file whose name is quite long, as here'
    assert wrap_paragraphs(f"One\ntwo.\n\n{typed}\n{typed}") == f"One two.\n\n{typed}\n{typed}"
