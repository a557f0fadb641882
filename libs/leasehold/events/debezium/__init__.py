"""Row changes in Debezium's envelope, as Kafka Connect's JSON converter writes it. PURE."""
