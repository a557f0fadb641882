"""Write sets and the one place that accepts or refuses them. PURE."""
