"""Seeds the tests' random draws, alike in each run unless `MOORAGE_TEST_SEED` has another number.

The gate's number is 0. Exploration (`make explore`) tries others, with more examples.
"""

import os
import random
import zlib

VARIABLE = "MOORAGE_TEST_SEED"
NUMBER = int(os.environ.get(VARIABLE, "0"))  # noqa: TID251 - of tests alone
EXPLORING = NUMBER != 0
EXAMPLES_FACTOR = 5


def seed(name: str) -> int:
    """The seed for one use of chance, which depends on its name and on the number in the environment."""
    return zlib.crc32(f"{NUMBER} {name}".encode())


def chance(of: int | str) -> random.Random:
    """The random choices of one case of a test, which has a number or a name of its own."""
    return random.Random(f"{NUMBER} {of}" if EXPLORING else of)


def examples(count: int) -> int:
    """How many examples to try: `count` in the gate, and more in exploration."""
    return count * EXAMPLES_FACTOR if EXPLORING else count
