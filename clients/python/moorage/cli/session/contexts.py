"""Contexts: named servers, clusters, and namespaces in a file, instead of repeated options."""

import os
from pathlib import Path

import msgspec
import yaml

from moorage.cli.exceptions import WrongUsage
from moorage.cli.render.output import Output

FILE_VARIABLE = "MOORAGE_CONTEXTS"
CONTEXT_VARIABLE = "MOORAGE_CONTEXT"
PRIVATE = 0o600


class Context(
    msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True
):
    """A command's destination; fields that are None have their usual defaults."""

    url: str | None = None
    cluster: str | None = None
    namespace: str | None = None
    token_file: str | None = msgspec.field(default=None, name="tokenFile")
    """The file with the token, since tokens are not stored in contexts."""


class Contexts(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """All contexts of a user, and the name of the current one."""

    current: str | None = None
    contexts: dict[str, Context] = {}


def contexts_file() -> Path:
    """Return the file named by MOORAGE_CONTEXTS, or else the default file."""
    environment = os.environ  # noqa: TID251 - the client's own
    if named := environment.get(FILE_VARIABLE):
        return Path(named)
    home = environment.get("XDG_CONFIG_HOME") or "~/.config"
    return Path(home).expanduser() / "moorage" / "contexts.yaml"


def read_contexts() -> Contexts:
    """Read the contexts file, or return no contexts if the file does not exist.

    Raises:
        WrongUsage: the file cannot be read, or is not valid.
    """
    file = contexts_file()
    try:
        content = yaml.safe_load(file.read_text(encoding="utf-8"))
        return msgspec.convert(content or {}, Contexts)
    except FileNotFoundError:
        return Contexts()
    except (OSError, UnicodeDecodeError, yaml.YAMLError, msgspec.ValidationError) as error:
        raise WrongUsage(f"{file}: {error}") from None


def context_in_use(name: str | None) -> Context:
    """Return the named context, or else the current one; empty if none is chosen.

    Raises:
        WrongUsage: the context does not exist, or the file is invalid.
    """
    known = read_contexts()
    chosen = name or known.current
    if chosen is None:
        return Context()
    if chosen not in known.contexts:
        raise WrongUsage(
            f"There is no context {chosen}: `moorage context list` shows those there are."
        )
    return known.contexts[chosen]


def complete_context(incomplete: str) -> list[str]:
    """Return the contexts with this prefix, for shell completion."""
    try:
        return [name for name in read_contexts().contexts if name.startswith(incomplete)]
    except WrongUsage:
        return []


def write_contexts(contexts: Contexts) -> None:
    """Replace the contexts file atomically, readable only by its user."""
    file = contexts_file()
    unfinished = file.with_name(f".{file.name}.part")
    text = Output.as_yaml(msgspec.to_builtins(contexts))
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        unfinished.write_text(text, encoding="utf-8")
        unfinished.chmod(PRIVATE)
        unfinished.replace(file)
    except OSError as error:
        raise WrongUsage(f"{file}: {error.strerror}") from None
