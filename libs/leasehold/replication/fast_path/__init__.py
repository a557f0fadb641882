"""Acknowledgements, records and requests by Redis, ahead of Kafka. Pure."""
