"""What services import."""
