"""Plants a bug in every Python process that has this folder, and the project's, on its PYTHONPATH.

Python imports this module as it starts. Only tests set such a path: it is no part of the service.
"""

import os

import pytest

from tests.concurrency.planted import BUGS

BUGS[os.environ["PLANTED_BUG"]].plant(pytest.MonkeyPatch())  # noqa: TID251 - of a test's own
