"""What the parts of making a plan are charged, in units of work (`model/budget.py`).

Everything that goes through trees, tables or columns more often than once for each piece of the
text charges one of these, so that a plan ends with its statement's time limit or a cancel, and is
left to another thread where it would hold up others.
"""

from __future__ import annotations

from typing import Final

WALK_WORK: Final = 200
"""Of going through one tree, beside its nodes."""
NODE_WORK: Final = 100
BIND_WORK: Final = 500
"""Of one node of the syntax that gets its meaning."""
FIELD_WORK: Final = 300
"""Of one column that a table or a star brings along."""
INDEX_TEXT_WORK: Final = 2_000
"""Of the meaning of one index's expression for one mention of its table."""
