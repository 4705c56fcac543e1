"""Checks of what the engine counts: against another engine by a digest, and against itself by a recount."""
