"""Events of others, as Debezium and stock serializers write them, read into change requests.
PURE."""
