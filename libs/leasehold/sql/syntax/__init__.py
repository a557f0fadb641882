"""PostgreSQL's own parser (libpg_query), and what its tree means here.

`parsing.parse` gives each statement's tree as JSON: a node is `{"SelectStmt": {…}}`, a body holds
only the fields that were said. Who reads a body holds its keys against its line in `accounting.py`.
"""
