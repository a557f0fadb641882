"""The Helm chart: what Helm makes of it, and what Kubernetes says of that."""
