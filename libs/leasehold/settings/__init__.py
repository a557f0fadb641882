"""Settings from environment variables and files, declared once with their words and limits."""
