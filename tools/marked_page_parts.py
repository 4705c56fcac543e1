"""Writes parts of pages between marks, where programs keep them up to date."""

import re


def between(page: str, name: str, text: str) -> str:
    """Return a page with this text between the marks of a section.

    Raises:
        ValueError: the page has no such section.
    """
    begin, end = f"<!-- begin {name} -->\n", f"<!-- end {name} -->"
    pattern = re.compile(re.escape(begin) + ".*?" + re.escape(end), re.DOTALL)
    if not pattern.search(page):
        raise ValueError(f"the page has no section {name}")
    return pattern.sub(lambda _: f"{begin}{text}\n{end}", page)
