"""What a released migration does never changes, for databases exist that it made."""

from pathlib import Path

import pytest

from tests.store.releases import DUMPS
from tools import freeze_migrations
from tools.freeze_migrations import FOLDER, RULE, edited_files, new_files, noted_hashes

FILES = ("sql/0001_tables.sql", "versions/0001_tables.py", "versions/0002_more.py")


def test_no_released_migration_was_edited_or_removed():
    assert not edited_files(), RULE


def test_every_migration_is_frozen():
    assert not new_files(), "freeze them: python -m tools.freeze_migrations"


def test_every_migration_has_a_dump_of_a_database_that_ended_with_it():
    numbers = {path.name[:4] for path in (FOLDER / "versions").glob("[0-9]*.py")}
    missing = sorted(numbers - {path.name[:4] for path in DUMPS})
    assert not missing, "make those of this checkout: python -m tools.dump_release"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Two released migrations, which a test may edit."""
    for name in FILES:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(f"-- {name}\n")
    freeze_migrations.main(tmp_path)
    return tmp_path


@pytest.mark.parametrize("name", FILES)
def test_an_edit_of_a_released_file_is_told_and_not_frozen(folder: Path, name: str):
    before = noted_hashes(folder)
    with (folder / name).open("a") as file:
        file.write(" ")
    assert edited_files(folder) == [name]
    with pytest.raises(SystemExit, match=f"never edited.*{name}"):
        freeze_migrations.main(folder)
    assert noted_hashes(folder) == before


def test_a_released_file_that_is_gone_is_told(folder: Path):
    (folder / FILES[0]).unlink()
    assert edited_files(folder) == [FILES[0]]


def test_a_new_migration_is_told_until_it_is_frozen(folder: Path):
    name = "sql/0003_more.sql"
    (folder / name).write_text("SELECT 1;\n")
    assert new_files(folder) == [name]
    freeze_migrations.main(folder)
    assert new_files(folder) == []
    assert edited_files(folder) == []
