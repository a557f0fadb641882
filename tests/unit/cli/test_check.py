"""`leasehold check` where there is nothing to check."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, cast

import pytest

from leasehold.cli import check
from leasehold.cli.exit_code import ExitCode
from leasehold.cli.output import Output
from leasehold.client.client_settings import ClientSettings
from leasehold.client.cluster_view import ClusterView


@contextmanager
def _no_tables(_settings: ClientSettings) -> Iterator[tuple[Any, ClusterView]]:
    yield None, ClusterView()


def test_without_tables_a_program_gets_json_too(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(check, "looking", _no_tables)
    args = argparse.Namespace(table=None, timeout=1.0)
    settings = cast(ClientSettings, None)  # not looked at
    assert check.run(args, settings, Output(as_json=True)) == ExitCode.OK
    assert json.loads(capsys.readouterr().out) == {"reports": [], "troubles": []}
