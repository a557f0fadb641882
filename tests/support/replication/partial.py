"""Makes a replicant of a database in this process a partial one, as a start with other settings
does it."""

from __future__ import annotations

from typing import Final

from leasehold.adapters.sqlite.layout import connect, read_part
from leasehold.adapters.sqlite.part_copy import PartCopy, copy_part
from leasehold.catalog.part import PartWish
from leasehold.dev.database import DevDatabase
from leasehold.settings.private_files import SIDE_FILES

STOP_S: Final = 30.0


def narrow(database: DevDatabase, name: str, wish: PartWish, source: str = "r1") -> PartCopy:
    """Let the replicant begin anew with a copy of what is wished for of another one's store, and
    return when all replicants are coherent. Raises what `copy_part` raises; it goes on as it was
    then. It is stopped, not killed: no schema change waits until its leases have run out."""
    store, node = database._stores[name], database.cluster.nodes[name]
    made = store.path.with_name("part")
    made.unlink(missing_ok=True)
    with database.held():
        copied = copy_part(database._stores[source].path, made, wish)
        node.stop()
    if not database.until(lambda: not node.up, STOP_S):
        raise TimeoutError(f"{name} is told to stop, and has not within {STOP_S:g} s")
    with database.held():
        store.close()
        for side in SIDE_FILES:
            store.path.with_name(store.path.name + side).unlink(missing_ok=True)
        made.replace(store.path)
        check = connect(store.path, cache_mb=1, read_only=True)
        assert read_part(check) == copied.part
        check.close()
        del database._stores[name]
        node.start()
    database.wait_ready()
    return copied
