"""The imports of the fork server, which every worker needs.

Modules are imported once: starting a worker from the fork server takes a fifth of the CPU time that
a worker with its own imports takes. The fork server starts no thread, opens no connection, and
reads no setting. When the supervisor ends for any reason, the fork server and the workers end with
it. The fork server has a session of its own, so that a terminal's Ctrl-C or hangup reaches the
supervisor alone.
"""

import gc
import os

from service.server.worker import end_with_supervisor
from service.server.worker_signals import leave_terminal

leave_terminal()  # before the slow imports
end_with_supervisor()
gc.disable()  # collecting garbage takes a sixth of the imports' time

import granian.server.mp  # noqa: E402 - see above

import service.app  # noqa: E402

__all__ = ["freeze_imports", "granian", "service"]

_FORK_SERVER = os.getpid()


def freeze_imports() -> None:
    """Freeze what was imported, so that a worker's garbage collector leaves its pages shared.

    Workers inherit this hook and do nothing: what a worker froze when it starts a process of its
    own could never be collected again.
    """
    if os.getpid() == _FORK_SERVER:
        gc.freeze()


gc.collect()
os.register_at_fork(before=freeze_imports, after_in_child=gc.enable)
