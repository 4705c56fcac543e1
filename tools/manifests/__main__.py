"""`python -m tools.manifests` writes docs/manifests.md."""

from pathlib import Path

from tools.manifests.page import page

PAGE = Path(__file__).parents[2] / "docs" / "manifests.md"

if __name__ == "__main__":
    PAGE.write_text(page())
