"""The changefeed: the log, as topics that the world outside reads."""
