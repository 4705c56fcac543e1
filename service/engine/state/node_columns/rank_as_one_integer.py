"""A rank is an int64 with a node's score above its tie-break: the greatest is the best node."""

from hashlib import blake2b
from typing import Final

TIE_BITS: Final = 40
"""In a rank, the total score is shifted left by this many bits; below it is the hash that breaks
ties."""

VETO: Final = -(2**62)
"""Or-ed to a rank, this makes it negative; no score that is added later makes it positive again."""

SIGN_BIT: Final = 63


def tie_hash(text: str) -> int:
    """Hash a text to an integer below 2**TIE_BITS, which is the same in every process."""
    return int.from_bytes(blake2b(text.encode(), digest_size=TIE_BITS // 8).digest(), "big")
