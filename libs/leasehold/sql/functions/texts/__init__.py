"""Text and bytea: strings, patterns, regular expressions, digests. Pure."""
