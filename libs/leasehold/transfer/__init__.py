"""Rows and schemas from other systems and to them: PostgreSQL, CSV, Parquet, SQL."""
