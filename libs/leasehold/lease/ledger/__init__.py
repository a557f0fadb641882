"""The lease ledger: its state and the commands that agents and the master send to it. Pure."""
