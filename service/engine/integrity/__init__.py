"""Integrity checks of the engine: a digest to compare engines, and a recount to check one."""
