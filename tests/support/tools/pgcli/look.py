"""What pgcli asks of a database to complete words, and is told: look.py DATABASE USER PORT"""

from __future__ import annotations

import sys

from pgcli.pgexecute import PGExecute

database, user, port = sys.argv[1:]
asked = PGExecute(database, user, "", "127.0.0.1", int(port))
print("path", sorted({*asked.search_path()} & {"public"}))
print("schemas", "public" in asked.schemata())
for name in ("tables", "views", "table_columns", "view_columns", "foreignkeys", "datatypes"):
    found = sorted(each for each in map(tuple, getattr(asked, name)()) if each[0] == "public")
    print(name, found)
print("databases", database in asked.databases())
print("functions", len([*asked.functions()]) >= 0)
for _, rows, _, _, sql, success, _ in asked.run("select 1"):
    print(sql, success, list(rows or ()))
