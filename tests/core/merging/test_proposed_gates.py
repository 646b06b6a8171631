"""The gate that is proposed is the one that a person would: tests first, and never what watches or does nothing."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from covey.core.merging.proposed_gates import Tree, proposals

NPM = "npm ci --prefer-offline --no-audit --no-fund && "
TEST = {"tests/test_it.py": "def test_it():\n    pass\n"}
PLAIN = {"tests/test_it.py": "import unittest\n\nclass It(unittest.TestCase): ...\n"}


def _package(more: dict[str, str] | None = None, once: str = "", **scripts: str) -> dict[str, str]:
    scripts |= {"test:ci": once} if once else {}
    needs = {"devDependencies": {"jest": "1"}}
    return {"package.json": json.dumps({"scripts": scripts, **needs}), "package-lock.json": "", **(more or {})}


@pytest.mark.parametrize(
    ("files", "wanted"),
    [
        ({}, None),
        ({"README.md": "", "src/a.c": ""}, None),
        # What the repository calls its own
        ({"Makefile": "all:\n\ntest: all\n\ttrue\n"}, "make test"),
        ({"Makefile": "check:\n\truff check\ntest:\n\tpytest\n"}, "make test"),
        ({"Makefile": "test:\n\ttrue\ncheck: lint test\n"}, "make check"),
        ({"GNUmakefile": "check:\n\ttrue\n", "tox.ini": ""}, "tox -e py"),
        ({"GNUmakefile": "check:\n\ttrue\n"}, "make check"),
        ({"Makefile": "tests = 3\nretest:\n\ttrue\n"}, None),
        ({"Makefile": "test := 3\nlint:\n\ttrue\n"}, "make lint"),
        ({"Makefile": "lint test: all\n\ttrue\n"}, "make test"),
        ({"Makefile": "lint:\n\ttrue\n", **TEST}, "python3 -m pytest -q"),
        ({"justfile": "default:\n  just --list\ntest *args:\n  pytest {{args}}\n"}, "just test"),
        ({"justfile": "test name:\n  pytest {{name}}\n"}, None),
        ({"justfile": "lint:\n  ruff\ntest:\n  pytest\nci: lint test\n"}, "just ci"),
        ({"Taskfile.yml": "version: '3'\n\ntasks:\n  lint:\n    cmds: []\n  test:\n    cmds: [go test]\n"},
         "task test"),
        # Python
        ({"tox.ini": "", **TEST}, "tox -e py"),
        ({"pyproject.toml": "[tool.tox]\n"}, "tox -e py"),
        ({"noxfile.py": "def lint(session): ...\ndef tests(session): ...\n"}, "nox -s tests"),
        ({"noxfile.py": ""}, "nox"),
        ({"pytest.ini": "", **TEST}, "python3 -m pytest -q"),
        ({"tests/conftest.py": "", **PLAIN}, "python3 -m pytest -q"),
        ({"requirements-dev.txt": "pytest>=8\n", **PLAIN}, "python3 -m pytest -q"),
        (TEST, "python3 -m pytest -q"),
        ({"src/shop/__init__.py": "", **TEST}, 'PYTHONPATH="$PWD/src" python3 -m pytest -q'),
        ({"src/shop.py": "", **PLAIN}, 'PYTHONPATH="$PWD/src" python3 -m unittest discover -s tests'),
        (PLAIN, "python3 -m unittest discover -s tests"),
        ({"tests/__init__.py": "", **PLAIN}, "python3 -m unittest"),
        ({"test_it.py": "import unittest\n"}, "python3 -m unittest"),
        ({"conftest.py": ""}, None),
        ({"tests/data.txt": ""}, None),
        ({"uv.lock": "", "pyproject.toml": "pytest", **TEST}, "uv run --frozen pytest -q"),
        ({"poetry.lock": "", **TEST}, "poetry install -q --no-interaction && poetry run pytest -q"),
        ({"manage.py": "", "shop/tests.py": "from django.test import TestCase\n"}, "python3 manage.py test"),
        # Node
        (_package(test="jest"), f"{NPM}npm run test"),
        ({"package.json": '{"scripts": {"test": "node --test"}}'}, "npm run test"),
        (_package({"node_modules/jest/x.js": ""}, test="jest"), "npm run test"),
        (_package({"yarn.lock": ""}, test="jest"), "yarn install --frozen-lockfile --prefer-offline && yarn run test"),
        (_package({"pnpm-lock.yaml": ""}, test="vitest"),
         "pnpm install --frozen-lockfile --prefer-offline && pnpm run test --run"),
        (_package({"bun.lockb": ""}, test="bun test"), "bun install --frozen-lockfile && bun run test"),
        (_package(test="vitest"), f"{NPM}npm run test -- --run"),
        (_package(test="vitest run"), f"{NPM}npm run test"),
        (_package(test="react-scripts test"), f"{NPM}CI=true npm run test"),
        (_package(test="ng test"), f"{NPM}npm run test -- --watch=false"),
        (_package(test="jest --watch"), f"{NPM}npx --no-install jest"),
        (_package(test="jest --watchAll", once="jest --ci"), f"{NPM}npm run test:ci"),
        (_package(test="jest --watchAll=false"), f"{NPM}npm run test"),
        (_package(test='echo "Error: no test specified" && exit 1'), None),
        (_package(test="echo ok"), None),
        (_package(test="exit 0", lint="eslint ."), f"{NPM}npm run lint"),
        ({"package.json": "{"}, None),
        ({"package.json": "[1]"}, None),
        ({"package.json": '{"scripts": 3}'}, None),
        # Others
        ({"Cargo.toml": ""}, "cargo test"),
        ({"Cargo.toml": "[workspace]\n"}, "cargo test --workspace"),
        ({"go.mod": ""}, "go test ./..."),
        ({"gradlew": "", "build.gradle": ""}, "./gradlew test"),
        ({"pom.xml": ""}, "mvn -B -q test"),
        ({"pom.xml": "", "mvnw": ""}, "./mvnw -B -q test"),
        ({"Gemfile": "", "spec/a_spec.rb": ""}, "bundle exec rspec"),
        ({"Rakefile": "Rake::TestTask.new", "Gemfile": ""}, "bundle exec rake test"),
        ({"mix.exs": ""}, "mix test"),
        ({"composer.json": '{"scripts": {"test": "phpunit"}}'},
         "composer install -q --no-interaction && composer test"),
        ({"Shop.sln": ""}, "dotnet test"),
        ({"CMakeLists.txt": "project(x)\n"}, None),
        ({"pyproject.toml": "[tool.ruff]\n"}, "ruff check"),
    ],
    ids=str,
)  # fmt: skip
def test_what_is_proposed_first(files: dict[str, str], wanted: str | None) -> None:
    found = proposals(Tree(frozenset(files), files.__getitem__))
    assert (found[0] if found else None) == wanted


def test_what_else_could_be_tried_follows() -> None:
    files = {"Makefile": "test:\n\ttrue\n", "uv.lock": "", "pytest.ini": "", **TEST}
    assert proposals(Tree(frozenset(files), files.__getitem__)) == (
        "make test", "uv run --frozen pytest -q", "python3 -m pytest -q",
    )  # fmt: skip


@pytest.mark.parametrize(
    ("files", "wanted"),
    [
        ({}, ("make lint", "ruff check")),
        (TEST, ("python3 -m pytest -q",)),
        ({"tests/run.bats": ""}, ()),
        ({"src/cart.test.ts": ""}, ()),
        ({"tests/data.txt": "", "vendor/x/tests/a.py": ""}, ("make lint", "ruff check")),
        ({"docs/spec/x.js": "", "spec/api.ts": ""}, ("make lint", "ruff check")),
        ({"tests/fixture.sh": "", "tests/fixtures/a.c": "", "web/node_modules/x/test/a.js": ""},
         ("make lint", "ruff check")),
        ({"tests/__init__.py": "", "tests/conftest.py": "", "docs/tests/a.rb": ""}, ("make lint", "ruff check")),
        ({"spec/cartSpec.js": ""}, ()),
        ({"src/test/java/Cart.java": ""}, ()),
    ],
)  # fmt: skip
def test_a_linter_never_takes_the_place_of_tests(files: dict[str, str], wanted: tuple[str, ...]) -> None:
    tree = {"Makefile": "lint:\n\ttrue\n", "pyproject.toml": "[tool.ruff]\n", **files}
    assert proposals(Tree(frozenset(tree), tree.__getitem__)) == wanted


def test_the_sources_are_found_from_every_folder_also_below_one_with_a_space(tmp_path: Path) -> None:
    root = tmp_path / "my shop"
    (root / "src").mkdir(parents=True)
    (root / "src" / "cart.py").write_text("")
    files = {"src/cart.py": "", **PLAIN}
    prefix, _, _ = proposals(Tree(frozenset(files), files.__getitem__))[0].partition("python3")
    subprocess.run(["/bin/sh", "-c", f"{prefix}sh -c 'cd / && python3 -c \"import cart\"'"], cwd=root, check=True)


@pytest.mark.parametrize("name", ["package.json", "composer.json"])
def test_a_file_that_is_nested_too_deeply_proposes_nothing(name: str) -> None:
    assert proposals(Tree(frozenset([name]), lambda _: "[" * 100_000)) == ()
