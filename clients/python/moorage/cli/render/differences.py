"""Prints which pods would get another node under other settings, and why."""

from collections.abc import Mapping, Sequence
from typing import Any

from moorage.cli.render.output import Output


def print_differences(output: Output, differences: Sequence[Mapping[str, Any]]) -> None:
    """Print a line for each pod that would get another node."""
    if not differences:
        return
    output.table(
        ("pod", "is on", "before", "after", "because of"),
        (
            (
                f"{change['namespace']}/{change['name']}",
                change.get("nodeName"),
                change["before"],
                change["after"],
                describe_cause(change),
            )
            for change in differences
        ),
    )
    output.line()


def describe_cause(change: Mapping[str, Any]) -> str:
    """Say which plugin makes the difference, and by how much."""
    if change["plugin"] is None:
        return "other pods"
    points = change["points"]
    return f"{change['plugin']} ({'refuses a node' if points is None else f'{points:+} points'})"


def describe_comparison(answer: Mapping[str, Any]) -> str:
    """Say how many of the compared pods would be placed elsewhere."""
    differing, compared = answer["differencesTotal"], answer["compared"]
    shown = len(answer["differences"])
    text = f"{differing} of {compared} placed pods would get another node if placed anew."
    if shown < differing:
        text += f" The first {shown} are listed."
    if not answer["complete"]:
        text += " The time was over before all pods were compared."
    return text
