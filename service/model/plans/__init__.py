"""Plans that are kept, how far releases may go at once, and the changes of which repairs consist."""
