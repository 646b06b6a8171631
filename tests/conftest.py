"""Hypothesis profiles: `dev` while you work, `ci` for `make test` and `make soak`."""

import signal

import pytest
from hypothesis import settings

# No deadline: a slow machine is not a bug. Never derandomized: every run looks somewhere new.
settings.register_profile("dev", deadline=None, max_examples=50)
settings.register_profile("ci", deadline=None, max_examples=100, derandomize=False, print_blob=True)
settings.load_profile("dev")

# A shell starts what runs in its background with interrupts ignored, and children inherit that: nothing that a test
# starts could be interrupted then.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_make_parametrize_id(val: object) -> str | None:
    """Name a long text by its length: names of tests stand in the environment of all that a test starts."""
    return f"{val[:20]!r} and {len(val) - 20} more" if isinstance(val, str | bytes) and len(val) > 200 else None


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Refuse to run if pytest-xdist has forgotten its groups: a group's daemon would be started once a worker."""
    if getattr(config.option, "loadgroup", False):
        lost = [item.nodeid for item in items if item.get_closest_marker("xdist_group") and "@" not in item.nodeid]
        if lost:
            raise pytest.UsageError(f"pytest-xdist has forgotten the group of {lost[0]}; which versions are these?")
