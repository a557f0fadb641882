"""The master: takes requests, decides them in batches, answers. Pure."""
