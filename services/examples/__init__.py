"""Services of somebody else: they follow tables with nothing of Leasehold's but its documents."""
