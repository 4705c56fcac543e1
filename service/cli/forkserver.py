"""What the fork server of a server's workers runs as it starts: it imports all that a worker needs, once.

A worker that is forked from it needs a fifth of the CPU time of one that imports by itself. It starts no thread, opens no connection and
reads no setting. It ends with the supervisor, however that ended, and the workers with it.
"""

import gc
import signal

import granian.server.mp

import service.app
import service.cli.main
import service.cli.worker

__all__ = ["granian", "service"]

service.cli.worker.end_with_parent()
signal.signal(signal.SIGHUP, signal.SIG_IGN)  # the supervisor decides what a hangup means
gc.collect()
gc.freeze()  # what all workers share stays shared
