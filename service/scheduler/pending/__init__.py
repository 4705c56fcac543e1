"""The queue of pending pods: which are tried next, and which changes make another try worthwhile."""
