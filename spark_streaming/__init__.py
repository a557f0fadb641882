"""The data pipeline on Spark Structured Streaming: backfills, and retries of conflicts."""
