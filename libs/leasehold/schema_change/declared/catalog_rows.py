"""A living schema, read from the rows of leasehold.catalog."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, NamedTuple

from leasehold.catalog.catalog import Catalog
from leasehold.model.errors import FeatureNotSupported, LeaseholdError, MalformedRequest
from leasehold.schema_change.declared.in_memory import load_catalog
from leasehold.schema_change.job.estimate import Pace, WorkPace

TABLE: Final = "table"
SEQUENCE: Final = "sequence"
VIEW: Final = "view"
ENUM: Final = "enum"
COMMENT: Final = "comment"
JOB: Final = "job"
PACE: Final = "pace"


class LivingSchema(NamedTuple):
    """A schema as it is at an LSN. `rows`: of each table, about, by id; `jobs`: those that run,
    with their tables."""

    catalog: Catalog
    lsn: int
    rows: Mapping[int, int]
    jobs: Mapping[int, str]
    pace: Pace


def _in_public(body: Any) -> Any:
    if "schema" in body:
        raise FeatureNotSupported(
            f"what is declared is the schema public, and this database has others, with"
            f" {body['name']} in them: change it by statements"
        )
    return body


def read_living_schema(
    rows: Iterable[Mapping[str, Any]], unpack: Callable[[bytes], Any]
) -> LivingSchema:
    """Return the schema that rows of leasehold.catalog tell, each by the names of its columns;
    `unpack` reads a body. A kind of row that is not known here is passed over: it is of what a
    newer release says beside. Raises MalformedRequest for what can't be read."""
    tables: dict[int, Any] = {}
    views: dict[int, Any] = {}
    enums: dict[int, Any] = {}
    comments: dict[tuple[int, int], str] = {}
    counts: dict[int, int] = {}
    jobs: dict[int, str] = {}
    pace, lsn = Pace(), 0
    try:
        for row in rows:
            lsn = row["lsn"]
            match row["kind"]:
                case "table" | "sequence":
                    tables[row["object_id"]] = _in_public(unpack(row["body"]))
                    counts[row["object_id"]] = row["rows_about"]
                case "view":
                    views[row["object_id"]] = unpack(row["body"])
                case "enum":
                    enums[row["object_id"]] = unpack(row["body"])
                case "comment":
                    comments[row["object_id"], row["element_id"]] = row["said"]
                case "job":
                    jobs[row["object_id"]] = row["name"]
                case "pace":
                    lease_s, *work = unpack(row["body"])
                    pace = Pace(lease_s, *(WorkPace(*each) for each in work))
        return LivingSchema(load_catalog(tables, views, comments, enums), lsn, counts, jobs, pace)
    except LeaseholdError:
        raise
    except Exception as error:  # whatever it is: nobody can read these rows
        words = f"the schema that the node tells can't be read ({type(error).__name__}: {error})"
        raise MalformedRequest(words) from error
