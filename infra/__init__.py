"""Where Leasehold runs: versions, topics, the local cluster, images. See DESIGN.md."""
