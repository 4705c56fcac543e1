"""The context of a command: its options, client, output, and the objects it names."""
