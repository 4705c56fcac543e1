"""The commands, one or a few that belong together in a module."""
