"""Parse manifests that may have `metadata.generateName` instead of a name."""

from collections.abc import Callable
from typing import Generic, TypeVar, cast

from service.model.core.errors import FieldError, InvalidManifest, MalformedJSON
from service.model.core.generate_name import (
    PREFIX_CHARACTERS_MAX,
    SUFFIX_CHARACTERS,
    undrawn,
)
from service.model.core.strict_json import decode_strict, encode
from service.model.core.validators import entries_of
from service.model.registry.manifests import Applicable, ObjectManifest

NAME, PREFIX = "metadata.name", "metadata.generateName"
_ANY_SUFFIX = "0" * SUFFIX_CHARACTERS

M = TypeVar("M", bound=Applicable)


class GenerateNameParser(Generic[M]):
    """A wrapper around a manifest parser that also accepts manifests with only a `generateName`.

    A manifest with a name keeps it, as in Kubernetes, whose answers often have both. Manifests with
    names are therefore parsed once, at no extra cost.
    """

    def __init__(self, parse: Callable[[bytes], M]) -> None:
        self._parse = parse
        self.are_undrawn = False
        """Whether at least one of the parsed manifests still needs a generated name."""

    def __call__(self, raw: bytes) -> M:
        """Parse a manifest.

        Raises:
            MalformedJSON, InvalidManifest: the wrapped parser raises them, or `generateName` cannot
                form a valid name.
        """
        try:
            return self._parse(raw)
        except InvalidManifest as error:
            prefix = _prefix_in(raw, error)
            if prefix is None:
                raise
        manifest = self._named(raw, prefix)
        self.are_undrawn = True
        return manifest

    def _named(self, raw: bytes, prefix: str) -> M:
        fields = entries_of(decode_strict(raw))
        name = prefix[:PREFIX_CHARACTERS_MAX] + _ANY_SUFFIX
        fields["metadata"] = entries_of(fields.get("metadata")) | {"name": name}
        try:
            manifest = self._parse(encode(fields))
        except InvalidManifest as error:
            raise InvalidManifest(
                [_about_prefix(problem, prefix) for problem in error.errors]
            ) from None
        if not isinstance(manifest, ObjectManifest):
            message = "goes with objects only: this kind is a setting, which has to be named"
            raise InvalidManifest([FieldError(PREFIX, message, prefix)])
        return cast("M", manifest.named(undrawn(prefix)))


def _prefix_in(raw: bytes, error: InvalidManifest) -> str | None:
    """Return the `generateName` of a manifest without a name, or None.

    Raises:
        InvalidManifest: the manifest has neither.
    """
    if not any(problem.field == NAME for problem in error.errors):
        return None
    try:
        metadata = entries_of(entries_of(decode_strict(raw)).get("metadata"))
    except (InvalidManifest, MalformedJSON):
        return None
    if metadata.get("name"):
        return None
    prefix = metadata.get("generateName")
    if isinstance(prefix, str) and prefix:
        return prefix
    message = "is required, or generateName to have one made"
    raise InvalidManifest(
        [
            FieldError(NAME, message) if problem.field == NAME else problem
            for problem in error.errors
        ]
    )


def _about_prefix(error: FieldError, prefix: str) -> FieldError:
    if error.field != NAME:
        return error
    return FieldError(PREFIX, f"makes no valid name: a name {error.message}", prefix)
