"""What makes a record of the log valid, and what applying it does. Pure."""
