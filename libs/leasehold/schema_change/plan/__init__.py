"""One DDL statement → the descriptors it leads to. One module a kind of statement. Pure."""
