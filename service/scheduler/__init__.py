"""Joins the engine and the store: replicas, decisions in batches, the commit protocol, controllers."""
