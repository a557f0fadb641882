"""The master process, and its standby: a node that may claim an epoch."""
