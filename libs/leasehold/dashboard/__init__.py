"""The dashboard: one page that shows a running database, live."""
