"""Reading many things with one git: what cannot be read is left out, and a git that hangs is not asked again."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from covey.errors import DidNotRun, ToolFailed
from covey.git.run import without_unreadable


def test_one_that_cannot_be_read_does_not_spoil_the_others() -> None:
    def read(some: Sequence[int]) -> dict[int, str]:
        if 5 in some:
            raise ToolFailed("git cat-file failed: bad object.")
        return {each: str(each) for each in some}

    assert without_unreadable(read, range(9)) == {each: str(each) for each in range(9) if each != 5}


def test_a_git_that_does_not_end_is_asked_once() -> None:
    asked: list[Sequence[int]] = []

    def read(some: Sequence[int]) -> dict[int, str]:
        asked.append(some)
        raise DidNotRun("git merge-tree did not end within 120 s.")

    with pytest.raises(DidNotRun):
        without_unreadable(read, range(100))
    assert len(asked) == 1
