"""Why a pod goes where it goes: verdicts and scores of every node, totals, and what a placement costs others."""
