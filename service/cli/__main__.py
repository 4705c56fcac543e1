"""Makes `python -m service.cli` run the `moorage` command, even without the installed script."""

from moorage.cli import main

if __name__ == "__main__":
    main()
