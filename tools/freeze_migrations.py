"""Freeze the migrations of a release: `python -m tools.freeze_migrations` notes the files' hashes.

Databases that a released migration made exist, so its files are never changed: the next migration
corrects what was wrong with it. A migration counts as released once it is frozen, which is part of
adding it.
"""

import hashlib
import json
import sys
from pathlib import Path

FOLDER = Path(__file__).parents[1] / "migrations"
NOTES = "released.json"
RULE = (
    "A released migration is never edited, since databases exist that its old text made:"
    " put the old text back, and write a new migration that changes what has to be changed."
)


def main(folder: Path = FOLDER) -> None:
    """Note the hashes of all new files; exit with a message if an old file has changed."""
    if edited := edited_files(folder):
        sys.exit(f"{RULE} Edited or missing: {', '.join(edited)}.")
    notes = json.dumps({**noted_hashes(folder), **present_hashes(folder)}, indent=2, sort_keys=True)
    (folder / NOTES).write_text(notes + "\n", encoding="utf-8")


def edited_files(folder: Path = FOLDER) -> list[str]:
    """Return the files of released migrations that were changed or removed."""
    present = present_hashes(folder)
    return [name for name, noted in noted_hashes(folder).items() if present.get(name) != noted]


def new_files(folder: Path = FOLDER) -> list[str]:
    """Return the files of migrations that are not frozen yet."""
    return sorted(present_hashes(folder).keys() - noted_hashes(folder).keys())


def noted_hashes(folder: Path) -> dict[str, str]:
    """Return the noted SHA-256 of each file of released migrations, by its path in the folder."""
    path = folder / NOTES
    noted: dict[str, str] = json.loads(path.read_bytes()) if path.exists() else {}
    return noted


def present_hashes(folder: Path) -> dict[str, str]:
    """Return the SHA-256 of each file that is there now, by its path in the folder."""
    files = [*(folder / "versions").glob("*.py"), *(folder / "sql").glob("*.sql")]
    return {
        path.relative_to(folder).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(files)
    }


if __name__ == "__main__":
    main()
