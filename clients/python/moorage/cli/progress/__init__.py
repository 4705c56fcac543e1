"""Following changes, and waiting for objects and plans."""
