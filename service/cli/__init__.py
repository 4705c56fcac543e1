"""The `moorage` command: it runs the server, and it is a client of one."""


def main() -> None:
    """Run the command; the rest is imported only here, for server processes import this package."""
    from service.cli.main import run  # noqa: PLC0415 - see above

    run()
