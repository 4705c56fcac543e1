"""Building blocks of server processes: clock, identifiers, tasks, signals, and connections."""
