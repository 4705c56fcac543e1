"""Which plugins there are, and which of them a profile runs, in what order and with what weight."""
