"""Kafka: reading, writing, transactions, administration."""
