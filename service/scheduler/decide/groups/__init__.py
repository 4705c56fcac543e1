"""Which pods have to get nodes together, in which domain, and which of them wait."""
