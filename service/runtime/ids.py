"""Random identifiers of objects and commits, and random suffixes of generated names."""

import os
import secrets
import uuid
from collections.abc import Callable
from itertools import chain, repeat

from service.model.core.generate_name import SUFFIXES, suffix_of

_UIDS_AT_A_TIME = 256
_UID_LENGTH = 36
_UID_DIGITS = [place for place in range(_UID_LENGTH) if place not in (8, 13, 18, 23)]
_UID_VERSION, _UID_VARIANT = 14, 19
_TO_VARIANT = bytes.maketrans(b"0123456789abcdef", b"89ab" * 4)


def _random_uids(count: int) -> list[str]:
    """Return many random UUIDs like those of `uuid.uuid4()`, in a seventh of the time.

    Each costs 3,100 instructions, compared with 20,500 for `uuid.uuid4()` and 8,600 for a single
    one made this way (bench/RESULTS.md). A batch of placements needs one for each pod and event.
    """
    digits = os.urandom(16 * count).hex().encode()
    uids = bytearray(b"-" * _UID_LENGTH * count)
    for digit, place in enumerate(_UID_DIGITS):
        uids[place::_UID_LENGTH] = digits[digit::32]
    uids[_UID_VERSION::_UID_LENGTH] = b"4" * count
    uids[_UID_VARIANT::_UID_LENGTH] = uids[_UID_VARIANT::_UID_LENGTH].translate(_TO_VARIANT)
    text = uids.decode()
    return [text[at : at + _UID_LENGTH] for at in range(0, len(text), _UID_LENGTH)]


class RandomIds:
    """A source of identifiers from the operating system's randomness; each process has its own."""

    def __init__(self) -> None:
        self.uid: Callable[[], str] = chain.from_iterable(
            map(_random_uids, repeat(_UIDS_AT_A_TIME))
        ).__next__
        """Return the `metadata.uid` of a new object; many are drawn at a time."""

    def suffix(self) -> str:
        """Return the random suffix of a generated name."""
        return suffix_of(secrets.randbelow(SUFFIXES))

    commit_id = staticmethod(uuid.uuid4)  # noqa: TID251 - the source of identifiers
