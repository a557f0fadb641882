"""What migrations of real projects say in one transaction, in words of our own.

`FAMILIES`: the statements between BEGIN and COMMIT, a question, and its rows then, which a
PostgreSQL answers likewise. `REFUSED`: statements, the SQLSTATE here, and some of the words; they
run in PostgreSQL.
"""

from __future__ import annotations

from typing import Any, Final

TABLES: Final = (
    (
        "create table shop (id int primary key, name varchar(20), size int, note text not null"
        " default 'n', constraint shop_size check (size > 0))"
    ),
    "create unique index shop_name on shop (name)",
    "create table item (id int primary key, shop_id int references shop, price numeric(8, 2))",
    "insert into shop values (1, 'a b', 5), (2, 'c d', null)",
    "insert into item values (1, 1, 1.50), (2, 2, 2.50)",
)

FAMILIES: Final[dict[str, tuple[tuple[str, ...], str, list[Any]]]] = {
    "loosen a column, then drop it": (
        ("alter table shop alter note drop not null", "alter table shop drop column note cascade"),
        "select * from shop order by id",
        [(1, "a b", 5), (2, "c d", None)],
    ),
    "rename a column, then drop it": (
        ("alter table shop rename size to extent", "alter table shop drop column extent"),
        "select * from shop order by id",
        [(1, "a b", "n"), (2, "c d", "n")],
    ),
    "drop an index, a column and their table": (
        (
            "alter table item drop constraint item_shop_id_fkey",
            "drop index shop_name",
            "alter table shop drop column note",
            "drop table shop",
            "create table shop (id int primary key)",
        ),
        "select count(*) from shop",
        [(0,)],
    ),
    "change two tables, then drop both": (
        (
            "alter table item drop constraint item_shop_id_fkey",
            "drop index shop_name",
            "alter table shop drop column note",
            "alter table item alter price set not null",
            "drop table shop",
            "drop table item",
        ),
        "select count(*) from information_schema.tables where table_name in ('shop', 'item')",
        [(0,)],
    ),
    "give a default, fill, demand, and take the default away": (
        (
            "alter table shop alter size set default 7",
            "update shop set size = 7 where size is null",
            "alter table shop alter size set not null",
            "alter table shop alter size drop default",
        ),
        (
            "select id, size, (select column_default from information_schema.columns"
            " where table_name = 'shop' and column_name = 'size'), (select is_nullable from"
            " information_schema.columns where table_name = 'shop' and column_name = 'size')"
            " from shop order by id"
        ),
        [(1, 5, None, "NO"), (2, 7, None, "NO")],
    ),
    "set a default twice, with rows between": (
        (
            "alter table shop alter note set default 'x'",
            "insert into shop (id) values (3)",
            "alter table shop alter note set default 'y'",
            "insert into shop (id) values (4)",
        ),
        "select id, note from shop order by id",
        [(1, "n"), (2, "n"), (3, "x"), (4, "y")],
    ),
    "split a column": (
        (
            "alter table shop add first text, add last text",
            "update shop set first = split_part(name, ' ', 1), last = split_part(name, ' ', 2)",
            "alter table shop drop column name",
            "alter table shop alter first set not null",
        ),
        "select id, first, last from shop order by id",
        [(1, "a", "b"), (2, "c", "d")],
    ),
    "insert, add a column, fill it, demand it": (
        (
            "insert into shop (id, name) values (3, 'e f')",
            "alter table shop add age int",
            "update shop set age = id",
            "alter table shop alter age set not null",
        ),
        "select id, age from shop order by id",
        [(1, 1), (2, 2), (3, 3)],
    ),
    "write, rename, write": (
        (
            "update shop set size = 1 where id = 1",
            "alter table shop rename size to extent",
            "update shop set extent = extent + 1 where id = 1",
        ),
        "select id, extent from shop order by id",
        [(1, 2), (2, None)],
    ),
    "rename, then constrain and index by the new name": (
        (
            "alter table shop rename size to extent",
            "alter table shop add constraint small check (extent < 100)",
            "create index shop_lower on shop (lower(name || extent)) where extent > 1",
            "alter table shop rename constraint shop_size to shop_extent",
        ),
        (
            "select conname, pg_get_constraintdef(oid) from pg_constraint where contype = 'c' and"
            " conrelid = 'shop'::regclass order by 1"
        ),
        [("shop_extent", "CHECK ((extent > 0))"), ("small", "CHECK ((extent < 100))")],
    ),
    "rename a column twice": (
        ("alter table shop rename size to s1", "alter table shop rename s1 to s2"),
        "select s2 from shop order by id",
        [(5,), (None,)],
    ),
    "set and drop NOT NULL": (
        (
            "alter table shop alter note drop not null",
            "alter table shop alter note set not null",
            "alter table item alter price set not null",
            "alter table item alter price drop not null",
        ),
        (
            "select is_nullable from information_schema.columns"
            " where column_name in ('note', 'price') order by 1"
        ),
        [("NO",), ("YES",)],
    ),
    "a wider type by USING of itself, and rows": (
        (
            "alter table shop alter size type bigint using size::bigint",
            'alter table shop alter name type varchar(40) using "name"::varchar(40)',
            "update shop set size = 6, name = 'x y' where id = 1",
        ),
        "select size, name from shop order by id",
        [(6, "x y"), (None, "c d")],
    ),
    "constrain what was written": (
        (
            "update shop set size = 9 where id = 2",
            "alter table shop add constraint large check (size < 10)",
            "alter table shop add constraint by_size unique (size)",
        ),
        "select size from shop order by id",
        [(5,), (9,)],
    ),
    "change a table and refer to it": (
        (
            "alter table shop rename size to extent",
            "alter table shop alter note drop not null",
            "alter table shop rename to store",
            "create table box (id int primary key, shop int not null references store (id))",
            "insert into box values (1, 2)",
            "alter table item drop constraint item_shop_id_fkey",
            "alter table item add foreign key (shop_id) references store on delete cascade",
        ),
        "select b.id, s.extent from box b join store s on s.id = b.shop",
        [(1, None)],
    ),
    "a table first, its key and its columns after, with rows": (
        (
            "create table log (rank int not null, what varchar(10))",
            "alter table log add constraint log_pk primary key (rank)",
            "insert into log values (1, 'x'), (2, 'y')",
            "alter table log add at int default 3",
            "alter table log alter what type varchar(30)",
            "alter table log rename what to told",
            "update log set at = 4 where rank = 2",
            "alter table log alter at set not null",
            "alter table log add gone int",
            "alter table log drop column gone",
        ),
        "select * from log order by rank",
        [(1, "x", 3), (2, "y", 4)],
    ),
    "a table that is renamed behind its rows": (
        (
            "create table crate (id int primary key, n int)",
            "insert into crate values (1, 1)",
            "alter table crate rename to parcel",
            "insert into parcel values (2, 2)",
        ),
        "select * from parcel order by id",
        [(1, 1), (2, 2)],
    ),
    "another type, and NULLs, and a default": (
        (
            "alter table item alter price type int using round(price)::int",
            "alter table item alter price set default 4",
            "alter table item alter price set not null",
            "alter table shop alter note type varchar(9)",
            "alter table shop alter note drop not null",
            "alter table shop alter note drop default",
        ),
        (
            "select column_name, data_type, is_nullable, column_default from"
            " information_schema.columns where column_name in ('price', 'note') order by 1"
        ),
        [("note", "character varying", "YES", None), ("price", "integer", "NO", "4")],
    ),
    "a narrower type under an index": (
        ("alter table shop alter name type varchar(10)",),
        "select * from shop order by id",
        [(1, "a b", 5, "n"), (2, "c d", None, "n")],
    ),
    "a narrower column, and a constraint over it": (
        ("alter table shop alter note type varchar(9)", "alter table shop add check (note <> '')"),
        "select * from shop order by id",
        [(1, "a b", 5, "n"), (2, "c d", None, "n")],
    ),
    "add, and take back": (
        ("alter table shop add c int", "alter table shop drop column c"),
        "select * from shop order by id",
        [(1, "a b", 5, "n"), (2, "c d", None, "n")],
    ),
    "a key for a table with rows of the block": (
        (
            "create table log (rank int, what text)",
            "insert into log values (1, 'x'), (2, 'y')",
            "alter table log add primary key (rank)",
            "update log set what = 'z' where rank = 2",
        ),
        "select * from log order by rank",
        [(1, "x"), (2, "z")],
    ),
    "a foreign key that is checked later, and checked": (
        (
            "create table box (id int primary key)",
            "insert into box values (1), (2)",
            "alter table item add box int",
            (
                "alter table item add constraint in_box foreign key (box) references box (id)"
                " on delete cascade not valid"
            ),
            "alter table item validate constraint in_box",
            "alter table shop add constraint large check (size > 1) not valid",
            "alter table shop rename constraint large to size_large",
            "alter table shop validate constraint size_large",
        ),
        (
            "select conname, convalidated::int, pg_get_constraintdef(oid) from pg_constraint"
            " where conname in ('in_box', 'size_large') order by 1"
        ),
        [
            ("in_box", 1, "FOREIGN KEY (box) REFERENCES box(id) ON DELETE CASCADE"),
            ("size_large", 1, "CHECK ((size > 1))"),
        ],
    ),
    "a constraint that is checked later, and checked by the same statement": (
        (
            (
                "alter table shop add constraint large check (size > 1) not valid,"
                " validate constraint large"
            ),
        ),
        "select convalidated::int from pg_constraint where conname = 'large'",
        [(1,)],
    ),
    "a key that is made unique, and a foreign key of its own table to it": (
        (
            "alter table shop add parent varchar(20)",
            "alter table shop add constraint shop_named unique (name)",
            "alter table shop add constraint above foreign key (parent) references shop (name)",
            "create index shop_by_parent on shop (parent)",
            "insert into shop (id, name, parent) values (3, 'e f', 'a b')",
        ),
        "select id, parent from shop order by id",
        [(1, None), (2, None), (3, "a b")],
    ),
    "what is made unique, and foreign keys of another table and of a new one": (
        (
            "alter table item add size int",
            "alter table shop add constraint by_size unique (size)",
            "alter table item add constraint item_size foreign key (size) references shop (size)",
            "create table box (id int primary key, size int references shop (size))",
            "insert into shop (id, size) values (3, 7)",
            "update item set size = 7 where id = 1",
            "insert into box values (1, 5)",
        ),
        "select i.id, i.size, b.size from item i left join box b on b.id = i.id order by 1",
        [(1, 7, 5), (2, None, None)],
    ),
    "a foreign key to what the same statement makes unique, said before it": (
        (
            (
                "alter table item add constraint f foreign key (id) references item (shop_id),"
                " add constraint k unique (shop_id), validate constraint f"
            ),
        ),
        (
            "select conname, pg_get_constraintdef(oid) from pg_constraint"
            " where conname in ('f', 'k') order by 1"
        ),
        [("f", "FOREIGN KEY (id) REFERENCES item(shop_id)"), ("k", "UNIQUE (shop_id)")],
    ),
    "a column dropped and made again": (
        ("alter table shop drop column note", "alter table shop add note int not null default 4"),
        "select * from shop order by id",
        [(1, "a b", 5, 4), (2, "c d", None, 4)],
    ),
    "a column under the name of one that is called otherwise": (
        (
            "create index by_note on shop (note)",
            "alter table shop rename column note to remark",
            "alter table shop add column note varchar(9) not null default ''",
            "alter table shop add check (remark <> '')",
        ),
        "select id, note, remark from shop order by id",
        [(1, "", "n"), (2, "", "n")],
    ),
    "rename a table, write it, copy its rows, and drop it": (
        (
            "alter table item rename to parcel",
            "insert into parcel values (3, 1, 3.50)",
            "create table box (id int primary key, price numeric(8, 2))",
            "insert into box select id, price from parcel",
            "drop table if exists parcel",
        ),
        (
            "select id, price::text, (select count(*) from information_schema.tables where"
            " table_name in ('item', 'parcel')) from box order by id"
        ),
        [(1, "1.50", 0), (2, "2.50", 0), (3, "3.50", 0)],
    ),
    "rename a table and its key twice": (
        (
            "alter table item rename to crate",
            "alter table crate rename constraint item_pkey to crate_pkey",
            "alter table crate rename to parcel",
            "alter index crate_pkey rename to parcel_pkey",
            "insert into parcel values (3, 1, 3.50)",
        ),
        (
            "select conrelid::regclass::text, conname, (select count(*) from parcel)"
            " from pg_constraint where contype = 'p' and connamespace = 'public'::regnamespace"
            " order by 2"
        ),
        [("parcel", "parcel_pkey", 3), ("shop", "shop_pkey", 3)],
    ),
    "privileges by the names that were given": (
        (
            "alter table item rename to parcel",
            "alter table parcel rename column price to fee",
            "grant select (fee), insert on parcel to public",
            "create table box (id int primary key)",
            "alter table box rename to crate",
            "grant select on crate to public",
        ),
        (
            "select has_column_privilege('public', 'parcel', 'fee', 'select')::int,"
            " has_table_privilege('public', 'parcel', 'insert')::int,"
            " has_table_privilege('public', 'crate', 'select')::int"
        ),
        [(1, 1, 1)],
    ),
    "rename a table and back": (
        (
            "alter table item rename to parcel",
            "alter table parcel rename to item",
            "alter table item add note text",
            "insert into item values (3, 1, null, 'x')",
        ),
        (
            "select id, note, (select count(*) from pg_class where relname = 'item_pkey')"
            " from item order by id"
        ),
        [(1, None, 1), (2, None, 1), (3, "x", 1)],
    ),
}

REFUSED: Final[dict[str, tuple[tuple[str, ...], str, str]]] = {
    "rows that mend what a constraint looks for": (
        ("update shop set size = 1 where id = 1", "alter table shop add check (size < 5)"),
        "23514",
        "COMMIT these first",
    ),
    "a column of which rows were written goes": (
        ("update shop set size = 6 where id = 1", "alter table shop drop column size"),
        "0A000",
        "change the table first",
    ),
    "a value that only the wider type holds, while readers of the other are there": (
        (
            "alter table shop alter name type varchar(40)",
            "update shop set name = 'a name of more than 20' where id = 1",
        ),
        "22001",
        "too long for varchar(20)",
    ),
    "a converted column, and rows": (
        ("alter table item alter price type text", "update item set price = 'x'"),
        "0A000",
        "changes table",
    ),
    "a converted column, and a constraint over it": (
        (
            "alter table item alter price type int using price::int",
            "alter table item add check (price > 0)",
        ),
        "0A000",
        "gets another type",
    ),
    "rows of a column that was dropped and made again": (
        (
            "alter table shop drop column note",
            "alter table shop add note int",
            "update shop set note = 1",
        ),
        "0A000",
        "has a name that another one has until then",
    ),
    "an index over a column that was dropped and made again": (
        (
            "alter table shop drop column note",
            "alter table shop add note int",
            "create index on shop (note)",
        ),
        "0A000",
        "has a name that another one has until this job has ended",
    ),
    "foreign keys of two tables to what each makes unique": (
        (
            "alter table shop add constraint by_size unique (size)",
            "alter table item add constraint by_shop unique (shop_id)",
            "alter table shop add constraint f foreign key (id) references item (shop_id)",
            "alter table item add constraint g foreign key (id) references shop (size) not valid",
        ),
        "0A000",
        "COMMIT one of the UNIQUE constraints first",
    ),
    "a constraint that is checked later over another type, and checked": (
        (
            "alter table item add constraint dear check (price > 0) not valid",
            "alter table item alter price type int using price::int",
            "alter table item validate constraint dear",
        ),
        "0A000",
        "whose check 'dear' an earlier one changes already",
    ),
}
