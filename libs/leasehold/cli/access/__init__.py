"""The commands on who may do what: users, keys of roles, rights of processes, the audit log."""
