"""Placing groups of pods all together or not at all."""
