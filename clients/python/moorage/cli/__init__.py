"""The `moorage` command, a client of a server; an installed server adds commands of its own."""

import gc


def main() -> None:
    """Run the command. Its modules are imported only now: server processes import this package.

    Meanwhile the garbage collector rests: what modules make stays, and to look at it again and
    again takes an eighth of the imports.
    """
    gc.disable()
    try:
        from moorage.cli.main import run  # noqa: PLC0415 - see above
    except KeyboardInterrupt:  # Ctrl-C is no error, so it shows no traceback.
        raise SystemExit(130) from None
    gc.freeze()
    gc.enable()
    run()
