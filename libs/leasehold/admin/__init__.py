"""The state of the cluster as the command, the dashboard and SQL views show it."""
