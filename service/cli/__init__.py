"""The `moorage` command: it runs the server, and it is a client of one."""


def main() -> None:
    """Run the command. Its modules are imported only now: server processes import this package."""
    try:
        from service.cli.main import run  # noqa: PLC0415 - see above
    except KeyboardInterrupt:  # Ctrl-C is no error, so it shows no traceback.
        raise SystemExit(130) from None
    run()
