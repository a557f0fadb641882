"""Whatever requests come to the master."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.isolation.fuzz.bad_requests import RequestDatabase, bad_request
from tests.isolation.fuzz.fuzzing import INPUTS, INPUTS_LONG, fuzz


def test_any_request_leaves_a_master_that_decides(tmp_path: Path) -> None:
    fuzz("requests", tmp_path, RequestDatabase, bad_request, INPUTS, together=20)


@pytest.mark.long("a million requests take some half an hour")
def test_a_million_requests_leave_a_master_that_decides(tmp_path: Path) -> None:
    fuzz("requests", tmp_path, RequestDatabase, bad_request, INPUTS_LONG, together=100)
