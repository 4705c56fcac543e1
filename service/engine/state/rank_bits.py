"""A rank is a node's score above its tie-break, in one int64: the greatest is the best node."""

from hashlib import blake2b
from typing import Final

TIE_BITS: Final = 40
"""A total score is shifted by this much above the hash that breaks ties."""

VETO: Final = -(2**62)
"""Or-ed to a rank it makes it negative, and no score that is added makes it positive again."""

SIGN_BIT: Final = 63


def tie_hash(text: str) -> int:
    """A stable hash below 2**TIE_BITS, the same in every process."""
    return int.from_bytes(blake2b(text.encode(), digest_size=TIE_BITS // 8).digest(), "big")
