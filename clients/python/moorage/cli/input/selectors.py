"""Label selectors as people write them for goals of plans: `app=web,tier=front`."""

from typing import Any

from moorage.cli.exceptions import WrongUsage


def label_selector(text: str, option: str) -> dict[str, Any]:
    """Return the selector of the labels that an option names.

    Raises:
        WrongUsage: it is something else than pairs of keys and values.
    """
    labels = {}
    for part in text.split(","):
        key, is_pair, value = part.partition("=")
        if not (is_pair and key.strip()) or key.endswith("!"):
            raise WrongUsage(f"{option} takes key=value pairs, and not {part!r}.")
        labels[key.strip()] = value.removeprefix("=").strip()
    return {"matchLabels": labels}
