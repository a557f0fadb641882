"""COPY: its formats, rows in, rows out. Pure."""
