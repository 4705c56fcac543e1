"""The `moorage` command, a client of a server. An installed server adds commands."""

import gc


def main() -> None:
    """Run the command, importing its modules only now because servers import this package, too.

    The garbage collector is disabled during the imports: modules' objects stay in memory, and
    scanning them repeatedly takes an eighth of the import time.
    """
    gc.disable()
    try:
        from moorage.cli.main import run  # noqa: PLC0415 - see above
    except KeyboardInterrupt:  # Ctrl-C is not an error, so it shows no traceback.
        raise SystemExit(130) from None
    gc.freeze()
    gc.enable()
    run()
