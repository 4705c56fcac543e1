"""The bytes of specs, divided around names in which the specs of one owner's pods differ."""

from functools import lru_cache
from typing import NamedTuple

from service.model.validation.names import SUBDOMAIN_LENGTH_MAX, dns_subdomain


class CutNames(NamedTuple):
    """The bytes of a spec, divided around what look like names in it.

    There is one part more than there are names.
    """

    parts: tuple[bytes, ...]
    names: tuple[bytes, ...]

    def rejoined(self, names: tuple[bytes, ...]) -> bytes:
        """Return the bytes of the spec with other names."""
        pieces = [self.parts[0]]
        for name, part in zip(names, self.parts[1:], strict=True):
            pieces += (name, part)
        return b"".join(pieces)

    def before_cut(self, at: int) -> int | None:
        """Return where a position would be if the names were empty; None if it is inside a name."""
        begin = 0
        for name, part in zip(self.names, self.parts, strict=False):
            begin += len(part)
            if at <= begin:
                return at
            at -= len(name)
            if at < begin:
                return None
        return at


def known_name(text: bytes) -> str | None:
    """Return the name of an object as a string that all pods share; None if it is no valid name."""
    return _name(text) if len(text) <= SUBDOMAIN_LENGTH_MAX else None


@lru_cache(maxsize=131_072)
def _name(text: bytes) -> str | None:
    name = text.decode(errors="replace")
    return None if dns_subdomain(name) else name
