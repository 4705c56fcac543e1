"""Reads manifests from files, folders, and standard input: YAML, JSON, or JSON Lines, or gzipped.

Objects are plain JSON values in file order, with each `List` replaced by its items.
"""

import gzip
import sys
from collections.abc import Hashable, Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec
import yaml
from typing_extensions import override

from moorage.cli.exceptions import WrongUsage

STANDARD_INPUT = "-"
MANIFEST_SUFFIXES = (".yaml", ".yml", ".json", ".jsonl", ".ndjson")


_NO_TEXT = frozenset(f"tag:yaml.org,2002:{name}" for name in ("bool", "float", "int", "null"))


class _PlainLoader(yaml.SafeLoader):
    """Loads YAML as if it were JSON: dates and keys stay text, as written."""

    @override
    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
        for key, _ in node.value:
            if key.tag in _NO_TEXT:
                key.tag = "tag:yaml.org,2002:str"
        return super().construct_mapping(node, deep)


_PlainLoader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if tag != "tag:yaml.org,2002:timestamp"]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}


def read_objects(sources: Sequence[str]) -> list[dict[str, Any]]:
    """Read all objects in the named files and folders; `-` is standard input.

    Raises:
        WrongUsage: a source cannot be read, is neither YAML nor JSON, or holds something else
            than objects.
    """
    return [item for source in sources for item in _objects_in(source)]


def read_document(source: str) -> dict[str, Any]:
    """Read the single object in a file as it is; a `List` stays a `List`.

    Raises:
        WrongUsage: the file cannot be read, is neither YAML nor JSON, or does not hold exactly one
            object.
    """
    documents = list(_documents(source, _read(source)))
    if len(documents) != 1 or not isinstance(documents[0], dict):
        raise WrongUsage(f"{source}: expected one object.")
    return documents[0]


def read_value(source: str) -> object:
    """Read the single JSON or YAML value in a file or on standard input.

    Raises:
        WrongUsage: the file cannot be read, or is neither JSON nor YAML.
    """
    return parse_value(source, _read(source))


def parse_value(named: str, text: bytes) -> object:
    """Parse text as a single JSON or YAML value.

    Raises:
        WrongUsage: the text is not a single JSON or YAML value; the message begins with `named`.
    """
    values = list(_documents(named, text))
    if len(values) != 1:
        raise WrongUsage(f"{named}: expected one value.")
    return values[0]


def _objects_in(source: str) -> Iterator[dict[str, Any]]:
    for file in _files(source):
        for document in _documents(file, _read(file)):
            yield from _flattened(file, document)


def _files(source: str) -> list[str]:
    path = Path(source)
    if source == STANDARD_INPUT or not path.is_dir():
        return [source]
    return sorted(str(file) for file in path.rglob("*") if _is_manifest(file))


def _is_manifest(file: Path) -> bool:
    return file.is_file() and file.name.removesuffix(".gz").endswith(MANIFEST_SUFFIXES)


def _read(source: str) -> bytes:
    try:
        if source == STANDARD_INPUT:
            return sys.stdin.buffer.read()
        content = Path(source).read_bytes()
        return gzip.decompress(content) if source.endswith(".gz") else content
    except (OSError, EOFError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise WrongUsage(f"{source}: {reason}") from None


def _documents(source: str, content: bytes) -> Iterator[object]:
    name = source.removesuffix(".gz")
    try:
        if name.endswith((".jsonl", ".ndjson")):
            return iter(_json_lines(content))
        if name.endswith(".json"):
            return iter([msgspec.json.decode(content)])
        if source == STANDARD_INPUT:
            return iter(_guessed(content))
        return iter(_yaml_documents(content))
    except (msgspec.DecodeError, yaml.YAMLError, UnicodeDecodeError) as error:
        raise WrongUsage(f"{source}: {error}") from None


def _guessed(content: bytes) -> list[object]:
    """Decode content as JSON, JSON Lines, or YAML, whichever it is."""
    if not content.lstrip().startswith(b"{"):
        return _yaml_documents(content)
    try:
        return [msgspec.json.decode(content)]
    except msgspec.DecodeError:
        return _json_lines(content)


def _json_lines(content: bytes) -> list[object]:
    return [msgspec.json.decode(line) for line in content.splitlines() if line.strip()]


def _yaml_documents(content: bytes) -> list[object]:
    documents = yaml.load_all(content, Loader=_PlainLoader)
    return [document for document in documents if document is not None]


def _flattened(source: str, document: object) -> Iterator[dict[str, Any]]:
    if not isinstance(document, dict):
        raise WrongUsage(f"{source}: expected objects, found {type(document).__name__}.")
    if str(document.get("kind", "")).endswith("List") and isinstance(document.get("items"), list):
        for item in document["items"]:
            yield from _flattened(source, item)
    else:
        yield document
