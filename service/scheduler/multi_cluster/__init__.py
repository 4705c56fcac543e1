"""Placing pods over several clusters, and groups in several of them at once."""
