"""A service with the tables in its own process; LEASEHOLD_KAFKA and LEASEHOLD_REDIS say whose."""

import sys

import leasehold

with leasehold.open_replica() as replica:
    city = replica.get("cities", sys.argv[1])
    print(f"{city['name']} has {city['people']} people" if city else "no such city")
