"""ASGI layers that handle a request before Litestar routes it."""
