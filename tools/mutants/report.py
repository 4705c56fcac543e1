"""The table of killed mutants, for people and for `docs/reliability.md`."""

from collections.abc import Iterable, Sequence
from pathlib import Path

from tools.marked_page_parts import between
from tools.mutants.catalogue import LAYERS, ROOT
from tools.mutants.judging import Verdict

PAGE = ROOT / "docs" / "reliability.md"
SECTION = "mutants"
HEAD = "| layer | mutants | killed | rate | missed when first planted | survivors |\n|---|--:|--:|--:|--:|---|"


def table(verdicts: Sequence[Verdict]) -> str:
    """Make the table: a row for each layer, and one for all."""
    lines = [HEAD]
    for layer in LAYERS:
        of_layer = [each for each in verdicts if each.mutant.layer == layer]
        if of_layer:
            lines.append(_line(layer, of_layer))
    return "\n".join([*lines, _line("all", verdicts)])


def _line(title: str, verdicts: Sequence[Verdict]) -> str:
    killed = sum(each.is_killed for each in verdicts)
    missed = sum(each.mutant.was == "missed" for each in verdicts)
    alive = ", ".join(f"`{each.mutant.name}`" for each in verdicts if not each.is_killed)
    rate = f"{100 * killed // len(verdicts)} %" if verdicts else ""
    return f"| {title} | {len(verdicts)} | {killed} | {rate} | {missed} | {alive} |"


def publish(verdicts: Sequence[Verdict], page: Path = PAGE) -> None:
    """Write the table between its marks."""
    text = page.read_text(encoding="utf-8")
    page.write_text(between(text, SECTION, table(verdicts)), encoding="utf-8")


def trouble(verdicts: Iterable[Verdict]) -> list[str]:
    """Describe the verdicts that somebody has to act on."""
    found = []
    for each in verdicts:
        if not each.is_killed:
            found.append(
                f"{each.mutant.name} {each.told}. {each.mutant.title}. {each.note}".strip()
            )
        else:
            found += [f"{each.mutant.name} is let through by {test}" for test in each.slept]
    return found
