"""Cluster settings on the command line: `name=value`, with the value in YAML."""

import yaml

from moorage.cli.exceptions import WrongUsage

TEXT_SETTINGS = frozenset({"kubernetes"})
"""The settings that stay text even if they look like a number, such as the version 1.36."""


def read_setting(text: str) -> tuple[str, object]:
    """Return the name and value of a setting.

    Raises:
        WrongUsage: the text is not `name=value`, or the value is not YAML.
    """
    name, equals, value = text.partition("=")
    if not equals:
        raise WrongUsage(
            f"{text}: a setting is name=value. (`moorage context` chooses the server and cluster.)"
        )
    if name in TEXT_SETTINGS and value not in ("", "null"):
        return name, value.strip("\"'")
    try:
        return name, yaml.safe_load(value)
    except yaml.YAMLError as error:
        raise WrongUsage(f"{name}: {error}") from None
