"""PURE: ids, records (everything that travels), topics, errors, ports."""
