"""Tells the figures that a server counts and measures about itself."""
