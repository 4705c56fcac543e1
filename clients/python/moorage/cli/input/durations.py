"""Durations on the command line: `30s`, `5m`, `12h`, `90d`, `2w`."""

import re
from datetime import timedelta

from moorage.cli.exceptions import WrongUsage

_DURATION = re.compile(r"(0)s?|([1-9][0-9]{0,5})([smhdw])")
_UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days", "w": "weeks"}


def read_seconds(option: str, text: str) -> int:
    """Return a duration in seconds.

    Raises:
        WrongUsage: the text is no duration; the message names the option.
    """
    if (match := _DURATION.fullmatch(text)) is None:
        raise WrongUsage(f"{option}: {text} is no number and unit such as 30s, 12h, 90d.")
    if match[1]:
        return 0
    return int(timedelta(**{_UNITS[match[3]]: int(match[2])}).total_seconds())
