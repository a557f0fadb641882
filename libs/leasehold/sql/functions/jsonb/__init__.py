"""Functions and operators over jsonb. Pure."""
