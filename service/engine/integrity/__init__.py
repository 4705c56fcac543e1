"""Integrity checks of the engine: a digest that compares engines, and a recount that checks one."""
