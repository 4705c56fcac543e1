"""The tool for renames reaches code and prose, and reports what it does not reach."""

import subprocess
from pathlib import Path

import pytest

from tests.paths import ROOT
from tools.rename import Table, Tree, main

MOVE = "service/engine/what_it_asks.py -> service/engine/nodes/rules.py"
PACKAGE = "service/engine/old/__init__.py -> service/engine/new/__init__.py"
FILES = {
    "service/engine/what_it_asks.py": "def asked(): ...\n",
    "service/engine/what_it_asks_too.py": "",
    "service/engine/old/__init__.py": "",
    "service/app.py": (
        "from service.engine.what_it_asks import asked\n"
        "from service.engine.what_it_asks_too import other\n"
        "from service.engine import old\n"
    ),
    "tests/test_app.py": (
        "from service.engine import what_it_asks, what_it_asks_too as too\n"
        "\n"
        "def test_it(monkeypatch):\n"
        '    monkeypatch.setattr("service.engine.what_it_asks.asked", what_it_asks)\n'
    ),
    "docs/page.md": "See [`rules`](../service/engine/what_it_asks.py), `engine/what_it_asks.py`: asked.\n",
    "mutants.toml": 'file = "service/engine/what_it_asks.py"\nold = "def asked()"\n',
}


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    for name, text in FILES.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    (tmp_path / "tools").mkdir()
    subprocess.run(["git", "init", "-q"], cwd=tmp_path, check=True)
    subprocess.run(["git", "add", "-A"], cwd=tmp_path, check=True)
    return Tree(tmp_path)


def apply(tree: Tree, *rows: str) -> int:
    (tree.root / "tools" / "renames.txt").write_text("\n".join(rows), encoding="utf-8")
    return main([], tree.root)


def read(tree: Tree, name: str) -> str:
    return (tree.root / name).read_text(encoding="utf-8")


def test_a_module_moves_with_its_imports_and_all_that_names_it(tree: Tree) -> None:
    assert apply(tree, MOVE) == 0
    assert read(tree, "service/engine/nodes/rules.py") == "def asked(): ...\n"
    assert not (tree.root / "service/engine/what_it_asks.py").exists()
    assert read(tree, "service/app.py") == (
        "from service.engine.nodes.rules import asked\n"
        "from service.engine.what_it_asks_too import other\n"
        "from service.engine import old\n"
    )
    assert read(tree, "docs/page.md") == (
        "See [`rules`](../service/engine/nodes/rules.py), `engine/nodes/rules.py`: asked.\n"
    )
    assert 'file = "service/engine/nodes/rules.py"' in read(tree, "mutants.toml")


def test_a_module_that_is_imported_as_such_keeps_its_name_where_it_is_used(tree: Tree) -> None:
    apply(tree, MOVE)

    assert read(tree, "tests/test_app.py") == (
        "from service.engine.nodes import rules as what_it_asks\n"
        "from service.engine import what_it_asks_too as too\n"
        "\n"
        "def test_it(monkeypatch):\n"
        '    monkeypatch.setattr("service.engine.nodes.rules.asked", what_it_asks)\n'
    )


def test_a_package_is_renamed_by_its_init(tree: Tree) -> None:
    (tree.root / "service/app.py").write_text("import service.engine.old\n", encoding="utf-8")

    assert apply(tree, PACKAGE) == 0
    assert read(tree, "service/app.py") == "import service.engine.new\n"


def test_what_a_module_defines_is_renamed_in_code_and_where_prose_quotes_code(tree: Tree) -> None:
    assert apply(tree, "service/engine/what_it_asks.py: asked -> requirements") == 0
    assert read(tree, "service/engine/what_it_asks.py") == "def requirements(): ...\n"
    assert "import requirements\n" in read(tree, "service/app.py")
    assert 'old = "def requirements()"' in read(tree, "mutants.toml")
    assert read(tree, "docs/page.md").endswith(": asked.\n")


def test_a_name_that_stands_for_two_things_is_refused(tree: Tree, capsys) -> None:
    (tree.root / "service/app.py").write_text("def asked(): ...\n", encoding="utf-8")

    assert apply(tree, "service/engine/what_it_asks.py: asked -> requirements") == 1
    assert "asked: defined in service/app.py" in capsys.readouterr().err
    assert read(tree, "service/engine/what_it_asks.py") == "def asked(): ...\n"


def test_a_module_of_the_client_has_a_folder_that_is_no_part_of_its_name(tree: Tree) -> None:
    rows = (
        "service/engine/what_it_asks.py -> clients/python/moorage/rules.py",
        "moorage/old.py -> clients/python/moorage/old.py",
    )
    assert apply(tree, *rows) == 0
    assert "from moorage.rules import asked\n" in read(tree, "service/app.py")
    assert 'file = "clients/python/moorage/rules.py"' in read(tree, "mutants.toml")


def test_a_second_time_changes_nothing(tree: Tree) -> None:
    apply(tree, MOVE)
    subprocess.run(["git", "add", "-A"], cwd=tree.root, check=True)

    assert apply(tree, MOVE) == 0
    assert not subprocess.run(
        ["git", "diff"], cwd=tree.root, check=True, capture_output=True
    ).stdout


def test_what_the_tool_does_not_reach_is_reported(tree: Tree) -> None:
    table = Table.read(MOVE)
    tree.move(table.moves)

    assert "docs/page.md: service/engine/what_it_asks.py" in tree.leftovers(table)


def test_a_line_that_is_no_row_is_refused() -> None:
    with pytest.raises(ValueError, match="no row of the table"):
        Table.read("service/a.py to service/b.py")


def test_nothing_here_has_an_old_name() -> None:
    assert main(["--check"], ROOT) == 0
