"""The database of `leasehold dev`, for a developer's machine."""
