"""The command `leasehold backup`, an action or two a file."""
