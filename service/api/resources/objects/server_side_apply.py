"""Parse a server-side apply: an object as YAML or JSON, and the manager of its fields."""

import asyncio
from collections.abc import Mapping
from typing import Any

import yaml
from typing_extensions import override

from service.api.http.context import ApiRequest
from service.api.http.problems import BodyTooLarge
from service.api.http.request import header, wrong_parameter
from service.model.core.errors import FieldError, InvalidManifest, MalformedJSON
from service.model.core.strict_json import decode_strict, encode
from service.scheduler.protocol.intents import UNKNOWN_MANAGER

MANAGER_LENGTH_MAX = 128
_DEPTH_MAX = 32


class _Loader(yaml.SafeLoader):
    """A loader for YAML that JSON can express: no aliases, no duplicate keys, and times as text."""

    depth = 0

    @override
    def compose_node(self, parent: Any, index: Any) -> Any:
        if self.check_event(yaml.AliasEvent):
            raise yaml.YAMLError("aliases are not taken")
        self.depth += 1
        if self.depth > _DEPTH_MAX:
            raise yaml.YAMLError(f"it is nested more than {_DEPTH_MAX} levels deep")
        node = super().compose_node(parent, index)
        self.depth -= 1
        return node

    @override
    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        names = [key.value for key, _ in node.value]
        if not all(isinstance(key, yaml.ScalarNode) for key, _ in node.value):
            raise yaml.YAMLError("a key is no text")
        if len(set(names)) < len(names):
            raise yaml.YAMLError("a key is there twice")
        for key, _ in node.value:
            key.tag = "tag:yaml.org,2002:str"
        return super().construct_mapping(node, deep=deep)


_Loader.yaml_implicit_resolvers = {
    first: [
        (tag, pattern)
        for tag, pattern in resolvers
        if tag not in ("tag:yaml.org,2002:timestamp", "tag:yaml.org,2002:merge")
    ]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}


async def decode_applied(body: bytes, yaml_bytes_max: int) -> Mapping[str, object]:
    """Decode an object from JSON, or from YAML that JSON can express.

    Raises:
        MalformedJSON, InvalidManifest: the body is neither, or not an object.
        BodyTooLarge: YAML, which is slow to parse, is longer than `yaml_bytes_max`.
    """
    if body.lstrip()[:1] == b"{":
        value = decode_strict(body)
    else:
        if len(body) > yaml_bytes_max:
            raise BodyTooLarge(
                f"YAML may have {yaml_bytes_max} bytes; send JSON, which may be longer."
            )
        value = await asyncio.to_thread(_from_yaml, body)
    if not isinstance(value, dict):
        raise InvalidManifest([FieldError("", "must be an object")])
    return value


def _from_yaml(body: bytes) -> object:
    try:
        value = yaml.load(body, Loader=_Loader)  # noqa: S506 - a SafeLoader
        return decode_strict(encode(value))
    except (yaml.YAMLError, UnicodeDecodeError, TypeError, ValueError, OverflowError) as error:
        reason = " ".join(str(error).split())[:200]
        raise MalformedJSON(f"The body is no YAML that Moorage reads: {reason}.") from None


def manager_of(request: ApiRequest, parameters: Mapping[str, str]) -> str:
    """Return the manager of a write's fields: `fieldManager`, or the first word of User-Agent."""
    named = parameters.get("fieldManager")
    if named is not None:
        if not named or len(named) > MANAGER_LENGTH_MAX or not named.isprintable():
            message = f"has to be a name of at most {MANAGER_LENGTH_MAX} printable characters"
            raise wrong_parameter("fieldManager", message, named)
        return named
    agent = (header(request, "user-agent") or "").partition("/")[0][:MANAGER_LENGTH_MAX].strip()
    return agent if agent and agent.isprintable() else UNKNOWN_MANAGER


def named_manager(request: ApiRequest, parameters: Mapping[str, str]) -> str:
    """Return the manager of a server-side apply, which must be named, unlike in other writes.

    Raises:
        MalformedRequest: `fieldManager` is missing or invalid.
    """
    if "fieldManager" not in parameters:
        raise wrong_parameter("fieldManager", "is required where an object is applied", "")
    return manager_of(request, parameters)
