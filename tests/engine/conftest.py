"""The profile of the long run: `pytest tests/engine --hypothesis-profile nightly`."""

from hypothesis import settings

settings.register_profile("nightly", deadline=None, print_blob=True)
