"""Authors of plugins import two modules of the service, and find in them all that they need."""

import ast
import re
from collections.abc import Iterator

import pytest

from service import plugin
from service.plugin import testing
from tests.paths import ROOT

PUBLIC = {module.__name__: module for module in (plugin, testing)}
PAGE = ROOT / "docs" / "plugins.md"
EXAMPLE = sorted((ROOT / "examples" / "plugin").glob("*.py"))


def sources() -> Iterator[str]:
    """Yield the modules of the example, and the pieces of code of the page on plugins."""
    for path in EXAMPLE:
        yield path.read_text("utf-8")
    yield from re.findall(
        r"^```python\n(.*?)^```", PAGE.read_text("utf-8"), re.MULTILINE | re.DOTALL
    )


def imported(source: str) -> Iterator[tuple[str, str]]:
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.ImportFrom) and node.module is not None:
            yield from ((node.module, alias.name) for alias in node.names)
        elif isinstance(node, ast.Import):
            yield from ((alias.name, "") for alias in node.names)


@pytest.mark.parametrize("module", PUBLIC)
def test_what_is_public_is_there(module: str) -> None:
    names = PUBLIC[module].__all__

    assert [name for name in names if not hasattr(PUBLIC[module], name)] == []
    assert len(names) == len(set(names))


def test_the_example_and_the_page_import_public_names_only() -> None:
    names = {
        (module, name)
        for source in sources()
        for module, name in imported(source)
        if module.partition(".")[0] in ("service", "moorage")
    }

    assert {module for module, _ in names} == PUBLIC.keys()
    assert [name for module, name in names if name not in PUBLIC[module].__all__] == []
