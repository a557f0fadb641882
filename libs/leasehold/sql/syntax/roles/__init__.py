"""What statements about roles and privileges say."""
