"""Ranks: an int64 with a node's score above its tie-break; the greatest rank is the best node."""

from typing import Final

TIE_BITS: Final = 40
"""In a rank, the total score is shifted left by this many bits, above the hash that breaks ties."""

VETO: Final = -(2**62)
"""ORed into a rank, this makes it negative; no score added later makes it positive again."""

SIGN_BIT: Final = 63
