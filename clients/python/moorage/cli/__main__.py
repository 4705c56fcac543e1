"""`python -m moorage.cli` does what `moorage` does, even if that script is not installed."""

from moorage.cli import main

if __name__ == "__main__":
    main()
