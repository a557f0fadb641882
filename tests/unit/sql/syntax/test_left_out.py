"""What is left out is refused with what to do instead, and a page that is there."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest

from leasehold.model.errors import FeatureNotSupported
from leasehold.sql.ddl.schema_statements import parse_statements
from leasehold.sql.syntax import left_out
from leasehold.sql.syntax.left_out import LeftOut

ROOT: Final = Path(__file__).parents[4]
SAID: Final = {
    "create function f() returns int language sql as 'select 1'": left_out.FUNCTIONS,
    "create or replace procedure p() language sql as ''": left_out.FUNCTIONS,
    "call p()": left_out.FUNCTIONS,
    "create trigger t before insert on a for each row execute function f()": left_out.TRIGGERS,
    "alter table a disable trigger all": left_out.TRIGGERS,
    "do $$ begin end $$": left_out.BLOCKS,
    "create rule r as on insert to a do nothing": left_out.RULES,
    "create policy p on a using (true)": left_out.ROW_SECURITY,
    "alter table a enable row level security": left_out.ROW_SECURITY,
    "alter table a attach partition b for values in (1)": left_out.PARTITIONS,
    "create table a (id int) partition by range (id)": left_out.PARTITIONS,
    "create table a (words tsvector)": left_out.TEXT_SEARCH,
    "create statistics s on a, b from t": left_out.STATISTICS,
    "create publication p for all tables": left_out.REPLICATION,
    "create foreign table f (a int) server s": left_out.FOREIGN,
    "create aggregate g (int) (sfunc = f, stype = int)": left_out.OPERATORS,
    "create operator === (function = f, leftarg = int, rightarg = int)": left_out.OPERATORS,
    "lock table a": left_out.TABLE_LOCKS,
    "cluster a": left_out.CLUSTERS,
}


@pytest.mark.parametrize("text", SAID)
def test_it_is_refused_with_what_to_do(text: str) -> None:
    what: LeftOut = SAID[text]
    with pytest.raises(FeatureNotSupported) as caught:
        parse_statements(text)
    assert what.words in caught.value.message
    told = f"{caught.value.message} {caught.value.detail.get('hint', '')}"
    assert left_out.PAGE in told
    assert "position" in caught.value.detail


def test_each_kind_is_shown_above() -> None:
    assert {*SAID.values()} == {*left_out.ALL}
    assert (ROOT / left_out.PAGE).is_file()
