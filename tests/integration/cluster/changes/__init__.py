"""Schema changes of tables of their own on one cluster: Kafka, Redis and Spark start once for all.

A package, since pytest ends what is of package scope with the last test below an `__init__.py`.
"""

from typing import Final

NODES: Final = ("m1", "m2", "r1", "r2")
REQUEST_KEY: Final = "a-master-key-of-more-than-enough-characters"
"""By which all sign. In secure mode it is another one, which nobody here knows."""
RETRY_ATTEMPTS: Final = 3
"""Of Spark, before a request becomes a dead letter."""
