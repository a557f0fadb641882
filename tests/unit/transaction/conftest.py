from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.transaction.written_table import STORES, Store, opened


@pytest.fixture(params=STORES)
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    """Empty; of every kind."""
    with opened(request.param, tmp_path) as made:
        yield made
