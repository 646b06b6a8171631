"""Which files a check names, and so which changes wait for a person."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from covey.config import Merge
from covey.core.merging.checks import PathCheck
from covey.core.merging.guarded_files import Named, commands_of, named, touched

MAKEFILES = {"Makefile", "makefile", "GNUmakefile"}


@pytest.mark.parametrize(
    ("command", "paths"),
    [
        ("sh check.sh", {"check.sh"}),
        ("./check.sh", {"check.sh"}),
        ('"$PWD/check.sh" --all', {"check.sh"}),
        ("python tools/run.py --fast && ./scripts/test", {"tools/run.py", "scripts/test"}),
        ("cd web && ./check", {"web/check"}),
        ("FAST=1 sh -e ci/test.sh", {"ci/test.sh"}),
        ("! ./a | ./b; (./c) || ./d & ./e", {"a", "b", "c", "d", "e"}),
        ("sh -c './a && ./b'", {"a", "b"}),
        ("if ./a; then ./b; fi", {"a", "b"}),
        ("pytest --config=ci/pytest.ini tests/test_a.py", {"ci/pytest.ini", "tests/test_a.py"}),
        ("python -m pytest", {"pytest.py", "pytest/__main__.py", "pytest/__init__.py"}),
        ("python3.11 -m tools.run", {"tools/run.py", "tools/run/__main__.py"}),
        ("make", MAKEFILES),
        ("make -C sub -f build.mk", {"sub/build.mk", "sub/Makefile"}),
        ("just test", {"justfile"}),
        ("npm test", {"package.json", ".npmrc"}),
        ("yarn test", {".yarnrc.yml"}),
        ("cargo test", {".cargo/config.toml"}),
        ("pre-commit run --all-files", {".pre-commit-config.yaml"}),
        ("pushd web && npm test", {"web/package.json"}),
        ("SCRIPT=ci/a.sh; sh $SCRIPT", {"ci/a.sh"}),
        ("npm --prefix web test", {"web/package.json"}),
        ("cd web && yarn run test", {"web/package.json"}),
        ("tox -e py311", {"tox.ini"}),
        ("nox", {"noxfile.py"}),
        ("./gradlew test", {"gradlew"}),
        ("sh 'a b.sh'", {"a b.sh"}),
        ("sh check.sh 'and an open quote", {"check.sh"}),
    ],
)
def test_what_a_command_runs_or_reads_is_named(command: str, paths: set[str]) -> None:
    found = named((command,))
    assert paths <= found.files | found.targets


@pytest.mark.parametrize(
    "command",
    ["test ! -e a.txt", "! grep -rqs broken a.txt && ! { test -e a.txt; }", "for x in a.txt; do cat $x; done",
     "cat a.txt",
     "sh ../a.txt", "sh /srv/a.txt", "sh ~/a.txt", "sh *.txt", "true", "", "pytest tests", "sh -- $(cat)/a.txt"],
)  # fmt: skip
def test_what_is_only_tested_or_lies_elsewhere_is_not_named(command: str) -> None:
    assert touched(["a.txt", "tests/test_a.py", "src/a.py"], named((command,))) == ()


def test_a_file_that_would_be_taken_for_the_recipe_is_named_too() -> None:
    found = named(("make test",))
    assert touched(["GNUmakefile", "src/x.c"], found) == ("GNUmakefile",)
    assert touched(["test"], found) == ("test",)  # make would find its target up to date


def test_a_new_folder_of_a_target_is_named_and_one_that_was_there_is_not() -> None:
    found = named(("make test",))
    assert touched(["test/a.py"], found) == ("test/a.py",)
    assert touched(["test/a.py"], found, is_folder={"test"}) == ()
    assert touched(["test/a.py"], named(("npm test",))) == ()


def test_all_commands_of_the_settings_count() -> None:
    merge = Merge(check="sh a", quick="sh b", checks=(PathCheck(("x",), "sh c"),))
    assert touched(["a", "b", "c", "d"], named(commands_of(merge))) == ("a", "b", "c")
    assert named(commands_of(Merge())) == Named(frozenset())


NAMES = st.text("abcdefg_-.", min_size=1, max_size=8).filter(lambda name: name.strip("-.") and not name.startswith("-"))
PATHS = st.lists(NAMES, min_size=1, max_size=3).map("/".join)


@given(PATHS, st.sampled_from(["sh {}", "./{}", "python {} -x", "a=b sh ./{}", "true && sh {} | tee", "(sh -e '{}')"]))
def test_whatever_script_is_run_is_named_and_nothing_else_changed_is(path: str, command: str) -> None:
    found = named((command.format(path),))
    assert touched([path, "src/other.py"], found) == (path,)
    assert touched([f"x{path}", f"{path}x"], found) == ()


@given(st.text(max_size=60))
def test_no_command_makes_it_fail_or_name_what_is_outside(command: str) -> None:
    found = named((command,))
    assert not [
        path for path in found.files | found.targets if path == ".." or path.startswith(("/", "../")) or "\0" in path
    ]
