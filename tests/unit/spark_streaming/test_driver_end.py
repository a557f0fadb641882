"""When Spark's driver ends, and what it says then."""

from __future__ import annotations

from typing import Any
from unittest.mock import MagicMock

import pytest
from py4j.protocol import Py4JNetworkError

from leasehold.model.errors import SparkUnavailable
from spark_streaming.driver import has_ended, told_in_words
from spark_streaming.spark_settings import SparkSettings


@pytest.mark.parametrize(
    ("answer", "ended"), [(False, False), (True, True), (Py4JNetworkError("gone"), True)]
)
def test_a_session_has_ended_when_its_master_or_its_jvm_says_so(answer: Any, ended: bool) -> None:
    session = MagicMock()
    asked = session.sparkContext._jsc.sc.return_value.isStopped
    asked.side_effect = [answer]
    assert has_ended(session) is ended


def test_what_spark_raises_at_the_start_is_told_in_words() -> None:
    settings = SparkSettings(master="spark://one:7077", folder="hdfs://names/x", secret="x" * 32)
    words = "spark://one:7077 as its master, does not start"
    with pytest.raises(SparkUnavailable, match=words), told_in_words("start", settings):
        raise Py4JNetworkError("gone")
