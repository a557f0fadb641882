"""The plans of DDL statements: the descriptors and jobs that they lead to. A module a kind of
statement. Pure."""
