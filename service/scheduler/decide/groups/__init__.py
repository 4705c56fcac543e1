"""Groups of pods: which pods have to be placed together, in which domain, and which of them wait."""
