"""Everything that travels between processes, as immutable tuples.

NamedTuples because MessagePack packs them as arrays without a conversion step, and building one
from an unpacked array is a single C call; the log carries tens of thousands of these a second.
Field order is the wire order: append fields, never reorder them.
"""
