from __future__ import annotations

from dataclasses import dataclass

from covey.core.merging.checks import Check, PathCheck, checks_for

WEB = PathCheck(("web/**", "package.json"), "npm test")


@dataclass(frozen=True)
class Settings:
    quick: str = ""
    check: str = "make test"
    checks: tuple[PathCheck, ...] = ()


def test_the_quick_check_comes_first_and_then_the_check() -> None:
    assert checks_for(Settings(quick="make lint"), ["a"]) == (Check("quick", "make lint"), Check("check", "make test"))


def test_without_a_check_nothing_is_tested() -> None:
    assert checks_for(Settings(check=""), ["a"]) == ()


def test_a_further_check_is_run_after_the_check_only_if_one_of_its_paths_changes() -> None:
    settings = Settings(checks=(WEB, PathCheck(("docs/**",), "make docs")))
    always = Check("check", "make test")
    assert checks_for(settings, ["src/a.py"]) == (always,)
    assert checks_for(settings, []) == (always,)
    assert checks_for(settings, ["src/a.py", "web/b/c.ts"]) == (always, Check("web/** package.json", "npm test"))
    assert [check.run for check in checks_for(settings, ["docs/a.md", "package.json"])] == [
        "make test",
        "npm test",
        "make docs",
    ]
