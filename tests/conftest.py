"""Hypothesis profiles: `dev` while you work, `ci` for `make test` and `make soak`."""

from hypothesis import settings

# No deadline: a slow machine is not a bug. Never derandomized: every run looks somewhere new.
settings.register_profile("dev", deadline=None, max_examples=50)
settings.register_profile("ci", deadline=None, max_examples=100, derandomize=False, print_blob=True)
settings.load_profile("dev")
