"""Arguments of commands that are more than a word: durations, selectors, settings."""
