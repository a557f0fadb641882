"""Alerts, boards, and a Prometheus for the local cluster."""
