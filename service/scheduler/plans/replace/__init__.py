"""Rollouts: pods of a new template replace those of the old one, wave by wave."""
