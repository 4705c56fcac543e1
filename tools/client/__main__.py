"""`python -m tools.client` writes what of the client package follows from others."""

from tools.client import PACKAGE, written

if __name__ == "__main__":
    for name, text in written().items():
        (PACKAGE / name).parent.mkdir(exist_ok=True)
        (PACKAGE / name).write_text(text, encoding="utf-8")
