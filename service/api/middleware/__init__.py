"""What happens to a request before the framework."""
