"""Decides requests that change nothing: explanations and topology."""
