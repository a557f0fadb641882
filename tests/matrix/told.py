"""What followers are told of each version that a job has made: what it changed, and its shapes."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import fastavro
from jsonschema import Draft202012Validator

from leasehold.catalog.descriptor import Descriptor
from leasehold.events.avro_schema import avro_schema
from leasehold.events.json_schema import json_schema
from leasehold.events.version_diff import diff
from tests.matrix.world import World
from tests.simulation.harm import demand


def demand_told(world: World) -> None:
    """A version that differs from the one before says in words in what, and so does the way back;
    one that does not says nothing. Libraries that are not ours take each shape."""
    catalog = world.reference.catalog
    for table in catalog.tables():
        versions = list(catalog.versions(table.table_id))
        for version in versions:
            fastavro.parse_schema(avro_schema(version))
            Draft202012Validator.check_schema(json_schema(version))
            demand(diff(version, version) == (), "told", f"{version.name} is not as itself")
        for before, after in pairwise(versions):
            same = _plain(before) == _plain(after)
            for one, other in ((before, after), (after, before)):
                words = [str(change) for change in diff(one, other)]
                of = f"{after.name}, from version {one.version} to {other.version}: {words}"
                demand(bool(words) != same, "told", of)
                demand(all(words) and len(set(words)) == len(words), "told", of)


def _plain(descriptor: Descriptor) -> Descriptor:
    """Without what differs between versions that are alike."""
    return replace(descriptor, version=0, modified_us=0, next_element_id=0)
