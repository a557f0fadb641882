"""A Kafka broker and controller in one process, from jars."""
