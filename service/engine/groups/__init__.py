"""Groups of pods that are placed together."""
