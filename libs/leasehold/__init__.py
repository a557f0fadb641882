"""Leasehold: tables that many services share, coherent, replicated, changeable while they run."""
