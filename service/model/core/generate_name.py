"""Names that Moorage makes of `metadata.generateName`, as an API server does.

Source: `SimpleNameGenerator` in k8s.io/apiserver/pkg/storage/names, and `SafeEncodeString` in
k8s.io/apimachinery/pkg/util/rand, v1.35.
"""

from typing import Protocol

ALPHABET = "bcdfghjklmnpqrstvwxz2456789"
"""What the end of a generated name is drawn from: no vowels, and nothing that is easily confused."""
SUFFIX_CHARACTERS = 5
NAME_CHARACTERS_MAX = 63
PREFIX_CHARACTERS_MAX = NAME_CHARACTERS_MAX - SUFFIX_CHARACTERS
"""A longer `generateName` is cut, as in Kubernetes."""
UNDRAWN = "*"
"""How the name of a manifest ends whose name is still to be drawn; no valid name ends so."""


class Named(Protocol):
    """Whatever has a name."""

    @property
    def name(self) -> str:
        """`metadata.name`."""
        ...


def undrawn(prefix: str) -> str:
    """The name of a manifest that only has this `generateName` yet."""
    return prefix[:PREFIX_CHARACTERS_MAX] + UNDRAWN


def is_undrawn(manifest: Named) -> bool:
    """Whether a manifest's name is still to be drawn."""
    return manifest.name.endswith(UNDRAWN)


def prefix_of(manifest: Named) -> str:
    """What the name begins with that is still to be drawn."""
    return manifest.name.removesuffix(UNDRAWN)


def suffix_of(number: int) -> str:
    """The end of a name that a number stands for; there are 27 to the power of 5 of them."""
    letters = []
    for _ in range(SUFFIX_CHARACTERS):
        number, letter = divmod(number, len(ALPHABET))
        letters.append(ALPHABET[letter])
    return "".join(letters)


SUFFIXES = len(ALPHABET) ** SUFFIX_CHARACTERS
"""How many ends of names there are."""
