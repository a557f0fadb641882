"""The words of a failure of Spark's, in a line for people."""

from __future__ import annotations

from typing import Final

from py4j.protocol import Py4JError, Py4JJavaError

WORDS_MAX: Final = 300


def words_of(error: BaseException | None) -> str:
    """Return what an error says. What Java has thrown is asked of Java, which may be gone: Py4J's
    own words name a variable of its, and asking for them asks Java, too."""
    try:
        said = str(error.java_exception.toString() if isinstance(error, Py4JJavaError) else error)
    except Py4JError as gone:
        said = str(gone)
    return next((line for line in said.splitlines() if line), type(error).__name__)[:WORDS_MAX]
