"""A story that is run with a rule off, and the harm that comes of it."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.models.summary import ModelLine
from tests.simulation.harm import Harm
from tests.simulation.stage import Stage


def harm_shown(
    invariant: str, off: str, story: Callable[..., None], run: Callable[[], None]
) -> ModelLine:
    """Fails unless `run`, which tells the `story` with the rules `off`, harms the invariant."""
    with pytest.raises(Harm, match=f"^{invariant}") as harm:
        run()
    name = story.__name__.replace("_", " ")
    told = f"stories of transactions: harm shown, {str(harm.value)[:60]}"
    events = Stage.events_of_last
    return ModelLine(invariant, f"{off} off: {name}", events, events, False, told)
