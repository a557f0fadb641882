"""The pure parts of the Spark pipeline: chunks, constraint facts, schedule, retries, pacing."""
