"""What a command has at hand: its options, a client, an output, and the objects that it names."""
