"""Decisions: from an intent and a replica to an answer and tentative changes."""
