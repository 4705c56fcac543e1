"""What happens to a request before and beside the framework."""
