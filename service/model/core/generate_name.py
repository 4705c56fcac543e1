"""Names generated from `metadata.generateName`, as an API server does.

Source: `SimpleNameGenerator` in k8s.io/apiserver/pkg/storage/names, and `SafeEncodeString` in
k8s.io/apimachinery/pkg/util/rand, v1.35.
"""

from typing import Protocol

ALPHABET = "bcdfghjklmnpqrstvwxz2456789"
"""The characters of generated suffixes: no vowels, and none that is easily misread."""
SUFFIX_CHARACTERS = 5
NAME_CHARACTERS_MAX = 63
PREFIX_CHARACTERS_MAX = NAME_CHARACTERS_MAX - SUFFIX_CHARACTERS
"""The length to which a longer `generateName` is cut, as in Kubernetes."""
UNDRAWN = "*"
"""The suffix of placeholder names; no valid name ends with it."""


class Named(Protocol):
    """An object whose name may be generated."""

    @property
    def name(self) -> str:
        """`metadata.name`."""
        ...


def undrawn(prefix: str) -> str:
    """Return a placeholder name for a manifest whose name will be generated."""
    return prefix[:PREFIX_CHARACTERS_MAX] + UNDRAWN


def is_undrawn(manifest: Named) -> bool:
    """Return whether a manifest still needs a generated name."""
    return manifest.name.endswith(UNDRAWN)


def prefix_of(manifest: Named) -> str:
    """Return the `generateName` prefix of a manifest with a placeholder name."""
    return manifest.name.removesuffix(UNDRAWN)


def suffix_of(number: int) -> str:
    """Return the suffix for a number from 0 to 27**5 - 1."""
    letters = []
    for _ in range(SUFFIX_CHARACTERS):
        number, letter = divmod(number, len(ALPHABET))
        letters.append(ALPHABET[letter])
    return "".join(letters)


SUFFIXES = len(ALPHABET) ** SUFFIX_CHARACTERS
"""The number of different suffixes."""
