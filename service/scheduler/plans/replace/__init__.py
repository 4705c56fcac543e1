"""Rollouts: pods of a new template replace those of the last one, wave by wave."""
