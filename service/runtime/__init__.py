"""What a process of the server runs on: its clock, identifiers, tasks, signals, and connections."""
