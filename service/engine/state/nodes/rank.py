"""Ranks: int64 values with a node's score above its tie-break; the highest rank is best."""

from typing import Final

TIE_BITS: Final = 40
"""The number of bits that the total score is shifted left in a rank, above the hash that breaks
ties."""

VETO: Final = -(2**62)
"""The value that is ORed into a rank to make it negative; no score added later makes it positive
again."""

SIGN_BIT: Final = 63
