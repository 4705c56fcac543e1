"""`python -m service.cli` is `moorage`, also where no script is installed."""

from service.cli import main

if __name__ == "__main__":
    main()
