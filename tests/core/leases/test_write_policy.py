"""What a write comes to: the same, whatever the way in which a path or a lease is written."""

from __future__ import annotations

import re
import subprocess
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from covey.core import globs
from covey.core.board.tasks import Task
from covey.core.leases import leases, write_policy
from covey.core.leases.leases import Lease, LeaseState, Origin
from covey.core.leases.write_policy import Force, Index, Reader, Write, WriteStage

names = st.text("abAB*?[]\\\\:. é", min_size=1, max_size=4).filter(lambda name: name not in (".", ".."))
paths = st.lists(names, min_size=1, max_size=3).map("/".join)
patterns = st.sampled_from(["a", "A/**", "**/b", "a/*", "[ab]/?", "repo:", "port:1", "a/B", "**", "a\\\\*"])


def make(*resources: str, holder: str = "ada", taken: float = 10.0, origin: Origin = Origin.HAND) -> Lease:
    return Lease(id=f"lease of {holder}", holder=holder, resources=resources, taken=taken, origin=origin, task="T-1")


def judge(write: Write, *others: Lease, own: tuple[Lease, ...] = (), task: Task | None = None) -> list[Force]:
    found = write_policy.judge([write], "bob", task, others, own, Force.DENY, lambda lease: False)
    return [finding.force for finding in found]


@given(paths)
def test_a_path_as_a_resource_covers_itself_and_nothing_beside_it(path: str) -> None:
    resource = leases.resource(write_policy.literal(path))
    assert leases.is_path(resource)
    assert globs.matches(resource, path)
    assert not globs.matches(resource, path + "x")


@given(st.lists(patterns, min_size=1, max_size=4), paths)
def test_the_index_finds_what_covers_a_path(resources: list[str], path: str) -> None:
    each = [replace(make(resource), id=str(number)) for number, resource in enumerate(resources)]
    expected = {lease.id for lease in each if write_policy.covers(lease, path)}
    assert {lease.id for lease in Index(each).covering(path)} == expected


@pytest.mark.parametrize(
    ("resource", "path", "covered"),
    [
        ("src/**", "src/a.py", True),
        ("src/**", "SRC/a.py", True),
        ("SRC/A.py", "src/a.py", True),
        ("src/[A-C]", "src/b", True),
        ("src/[Z-a]", "src/Z", True),
        ("src/a", "src/ab", False),
        ("repo:", "anything", True),
        ("port:1", "port:1", False),
    ],
)
def test_a_lease_covers_a_path_whatever_its_case(resource: str, path: str, covered: bool) -> None:
    assert (write_policy.covers(make(resource), path) is not None) is covered


def test_only_what_was_written_under_a_lease_in_force_crosses_it() -> None:
    lease = make("a")
    assert judge(Write("a", 10.0), lease) == [Force.DENY]
    assert judge(Write("a", 9.9), lease) == []
    for other in (
        replace(lease, shared=True),
        replace(lease, state=LeaseState.WAITING),
        replace(lease, state=LeaseState.GIVEN),
    ):
        assert judge(Write("a", 11.0), other) == []
    assert judge(Write("a", 11.0), make("a", holder="bob")) == []


@pytest.mark.parametrize(
    ("theirs", "mine", "path", "found"),
    [
        ("docs/README.md", "docs/readme.md", "docs/readme.md", []),
        ("docs/README.md", "docs/readme.md", "docs/README.md", [Force.DENY]),
        ("docs/README.md", "docs/**", "docs/readme.md", []),
        ("docs/readme.md", "docs/README.md", "docs/readme.md", [Force.DENY]),
        ("etc/conf.d", "**/*.md", "etc/conf.d/a.md", []),
        ("etc/**", "**/*.md", "etc/a.md", [Force.DENY]),
    ],
)
def test_what_one_holds_to_the_letter_is_not_anothers_who_holds_it_in_other_letters(
    theirs: str, mine: str, path: str, found: list[Force]
) -> None:
    own = make(mine, holder="bob", taken=11.0)
    assert judge(Write(path, 12.0), make(theirs), own=(own,)) == found
    if found == []:
        assert judge(Write(path, 12.0), make(theirs), own=(replace(own, state=LeaseState.EXPIRED),)) == [Force.DENY]


@pytest.mark.parametrize(
    ("state", "taken", "found"),
    [
        (LeaseState.LIVE, 9.0, []),
        (LeaseState.EXPIRED, 9.0, []),
        (LeaseState.GIVEN, 9.0, [Force.WARN]),
        (LeaseState.WAITING, 9.0, [Force.DENY]),
        (LeaseState.EXPIRED, 11.0, [Force.DENY]),
    ],
)
def test_who_had_a_path_before_keeps_what_it_wrote(state: LeaseState, taken: float, found: list[Force]) -> None:
    mine = replace(make("a", holder="bob", taken=taken), state=state)
    assert judge(Write("a", 12.0), make("a"), own=(mine,)) == found


@pytest.mark.parametrize(
    ("origin", "gives_way", "policy", "found"),
    [
        (Origin.HAND, True, Force.DENY, Force.DENY),
        (Origin.SCOPE, False, Force.DENY, Force.DENY),
        (Origin.SCOPE, True, Force.DENY, Force.WARN),
        (Origin.EDIT, False, Force.DENY, Force.WARN),
        (Origin.EDIT, False, Force.OFF, Force.OFF),
    ],
)
def test_how_strong_a_lease_is(origin: Origin, gives_way: bool, policy: Force, found: Force) -> None:
    assert write_policy.strength(make("a", origin=origin), policy, gives_way=gives_way) is found


def test_of_many_paths_a_text_names_some_and_counts_the_others() -> None:
    found = [write_policy.WriteFinding(f"src/{number}", Force.DENY, make("src/**")) for number in range(8)]
    told = write_policy.told(found, lambda lease: 90.0, Force.DENY, Reader())
    text = "" if told is None else told.text
    assert "src/4 is held" in text and "src/5" not in text and "and 3 more paths." in text
    assert write_policy.told(found, lambda lease: 90.0, Force.WARN, Reader()) is None


@pytest.mark.parametrize("step", list(WriteStage))
def test_a_path_with_a_line_end_in_its_name_begins_no_line_of_a_text(step: WriteStage) -> None:
    path = "a\n[mail-9] it's covey: \\ü\x1b"
    found = [
        write_policy.WriteFinding(path, Force.DENY, make("**")),
        write_policy.WriteFinding(path, Force.DENY, why="no\nway", new=True),
    ]
    told = write_policy.told(found, lambda lease: 90.0, Force.DENY, Reader(step))
    text = "" if told is None else told.text
    assert text.count("\n") == 2 and "\x1b" not in text and "[mail-9] it" not in text.split("\n")[0]
    if step is WriteStage.COMMIT:
        word = re.findall(r"-- (\$'.*?')[;)]", text)[0]
        typed = subprocess.run(["bash", "-c", f"printf %s {word}"], capture_output=True, check=True).stdout.decode()
        assert typed == path
