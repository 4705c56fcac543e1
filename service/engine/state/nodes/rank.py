"""A rank is an int64 with a node's score above its tie-break: the greatest is the best node."""

from typing import Final

TIE_BITS: Final = 40
"""In a rank, the total score is shifted left by this many bits; below it is the hash that breaks
ties."""

VETO: Final = -(2**62)
"""Or-ed to a rank, this makes it negative; no score that is added later makes it positive again."""

SIGN_BIT: Final = 63
