"""A process that uses a data folder, as `moorage serve` does, until its standard input closes.

    other_process.py <folder> [user]

It prints one line: its role and the URL, or the error. With a user it gives up root first.
"""

import json
import os
import pwd
import sys
from pathlib import Path

from service.store.embedded import EmbeddedPostgres, EmbeddedPostgresError


def main(folder, user=None):
    if user is not None:
        _become(pwd.getpwnam(user))
    try:
        postgres = EmbeddedPostgres(Path(folder), settings={"fsync": "off"})
        url = postgres.start()
    except EmbeddedPostgresError as error:
        print(json.dumps({"error": str(error)}), flush=True)
        return
    print(json.dumps({"url": url, "supervisor": postgres.is_supervisor}), flush=True)
    for line in sys.stdin:
        assert line == "role\n"
        print(json.dumps({"url": url, "supervisor": postgres.is_supervisor}), flush=True)
    postgres.stop()


def _become(entry):
    os.setgroups([])
    os.setgid(entry.pw_gid)
    os.setuid(entry.pw_uid)
    os.chdir("/")


if __name__ == "__main__":
    main(*sys.argv[1:])
