"""Infrastructure for Leasehold: versions, topics, the local cluster, images. See DESIGN.md."""
