"""The command `leasehold doctor`: facts are gathered, checks judge them, findings are shown."""
