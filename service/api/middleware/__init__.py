"""What happens to a request before Litestar routes it."""
