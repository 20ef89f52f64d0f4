"""What the service answers, by subject."""
