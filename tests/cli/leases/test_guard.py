"""What git tells a session whose push was refused."""

from __future__ import annotations

import pytest

from covey.cli.leases import guard
from covey.core.people.commands.pushes import Push
from covey.core.people.questions import Permission, Permitted


@pytest.mark.parametrize("why", ["covey lands your work", "covey lands your work.", ""])
def test_what_a_person_answered_ends_with_a_full_stop(why: str) -> None:
    told = guard._refusal(Push(remote="origin", refs=("main",)), Permitted(Permission.DENY, why))
    assert ". Commit on your own branch" in told and ".." not in told
    assert why.rstrip(".") in told
