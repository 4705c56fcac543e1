"""Explanations of placements: verdicts and scores of every node, totals, and opportunity cost."""
