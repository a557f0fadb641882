"""Spans of what a process does, sent to an OpenTelemetry collector; and the trace of who calls."""
