from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.sql.asked import Asked, filled


@pytest.fixture
def asked(tmp_path: Path) -> Iterator[Asked]:
    store = filled(tmp_path)
    made = Asked(store)
    yield made
    made.snapshot.close()
    store.close()
