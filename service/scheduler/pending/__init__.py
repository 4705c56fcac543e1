"""The queue of pending pods: which to try next, and which changes justify another try."""
