"""All-or-nothing placement of groups of pods."""
