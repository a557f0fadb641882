"""`leasehold dev`: a database for a developer's machine."""
