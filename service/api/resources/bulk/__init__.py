"""Many objects at once: apply, reports on the status of pods, and export."""
