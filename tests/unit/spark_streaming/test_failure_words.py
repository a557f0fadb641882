"""Goal: who waits for Spark is told why, and telling it can't fail itself."""

from __future__ import annotations

from typing import Any

import pytest
from py4j.protocol import Py4JJavaError, Py4JNetworkError

from spark_streaming.failure_words import WORDS_MAX, words_of


class JavaException:
    """As Py4J has it: every word of it is a question to the JVM."""

    _target_id = "o709"

    def __init__(self, words: str | None) -> None:
        self._words = words
        self._gateway_client: Any = self

    def toString(self) -> str:  # noqa: N802 - Java's name
        return self.send_command("")

    def send_command(self, _command: str) -> str:
        if self._words is None:
            raise Py4JNetworkError("Answer from Java side is empty")
        return self._words


def java(words: str | None) -> Py4JJavaError:
    return Py4JJavaError("An error occurred while calling o709.start.\n", JavaException(words))


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (java("FSError: No space left on device\n\tat write(A.java:1)"), "No space left on device"),
        (java(None), "Answer from Java side is empty"),
        (OSError(), "OSError"),
        (OSError(28, "No space left on device"), "No space left on device"),
        (ValueError("\n\nsecond"), "second"),
        (None, "None"),
    ],
)
def test_the_words_of_a_failure(error: BaseException | None, words: str) -> None:
    said = words_of(error)
    assert words in said
    assert "\n" not in said


def test_they_are_bounded() -> None:
    assert len(words_of(ValueError("x" * 10_000))) == WORDS_MAX
