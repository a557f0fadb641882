"""Descriptors, element states and what they do to rows; plans and jobs. PURE."""
