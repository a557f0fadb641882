"""What the process measures, as Prometheus reads it."""
