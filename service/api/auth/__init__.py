"""Authenticate callers, and limit what they may do, how often, and what they see."""
