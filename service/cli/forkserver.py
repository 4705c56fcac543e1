"""What the fork server of a server's workers runs as it starts: it imports all that a worker needs, once.

A worker that is forked from it needs a fifth of the CPU time of one that imports by itself. It starts no thread, opens no connection and
reads no setting. It ends with the supervisor, however that ended, and the workers with it. What the terminal says, Ctrl-C or a hangup,
is for the supervisor to decide upon, so it has a session of its own.
"""

import gc

from service.cli.stopping import leave_terminal
from service.cli.worker import end_with_parent

leave_terminal()  # before what takes long
end_with_parent()

import granian.server.mp  # noqa: E402 - see above

import service.app  # noqa: E402
import service.cli.main  # noqa: E402

__all__ = ["granian", "service"]

gc.collect()
gc.freeze()  # what all workers share stays shared
