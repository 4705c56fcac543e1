"""Label selectors in the notation of plan goals: `app=web,tier=front`."""

from typing import Any

from moorage.cli.exceptions import WrongUsage


def label_selector(text: str, option: str) -> dict[str, Any]:
    """Return the selector for the labels given by an option.

    Raises:
        WrongUsage: the text is not a list of `key=value` pairs.
    """
    labels = {}
    for part in text.split(","):
        key, is_pair, value = part.partition("=")
        if not (is_pair and key.strip()) or key.endswith("!"):
            raise WrongUsage(f"{option} takes key=value pairs, and not {part!r}.")
        labels[key.strip()] = value.removeprefix("=").strip()
    return {"matchLabels": labels}
