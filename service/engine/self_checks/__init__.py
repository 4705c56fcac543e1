"""The engine compares what it counts: with another engine by a hash, with itself by counting anew."""
