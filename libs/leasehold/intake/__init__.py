"""The intake: events of other systems on Kafka become change requests."""
