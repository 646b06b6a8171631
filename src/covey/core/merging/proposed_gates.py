"""The gate that a person who knows the tools of a repository would propose: its tests, or its linters if it has none.

Each proposal ends by itself and asks nothing. What comes first is what the repository itself says (make, just, tox),
then what its tools are called with. A linter never takes the place of tests that are there.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Iterator
from dataclasses import field, replace

from covey.values import dataclass

MAX_PROPOSALS = 4
"""Proposals that are worth a try."""
MAKEFILES = ("GNUmakefile", "makefile", "Makefile")
JUSTFILES = ("justfile", "Justfile", ".justfile")
TASKFILES = ("Taskfile.yml", "Taskfile.yaml", "taskfile.yml", "taskfile.yaml")
TEST_TARGETS = ("test", "tests")
WHOLE = ("check", "ci", "verify", "all-tests", "test-all")
"""Targets that are taken in place of the tests alone where they run those too."""
CODE = "bats|c|cc|cpp|cs|exs|go|java|js|jsx|kt|lua|mjs|php|pl|py|rb|rs|sh|swift|t|ts|tsx"
TEST_FILES = (
    r"(?!docs?/|(?:.*/)?(?:node_modules|vendor|(?:__)?fixtures?(?:__)?|testdata|test_data)/)(?:.*/)?"
    r"(?:(?:tests?|__tests__)/(?:.*/)?(?!__init__|conftest|(?:fixture|helper|util)s?\b)[^/]+"
    rf"|test_[^/]+|[^/]+(?:[._-](?:test|spec)|Spec))\.(?:{CODE})"
)
"""What files are called that test something, in whatever language; a folder `spec` has other specifications, too."""


@dataclass(frozen=True)
class Tree:
    """The files of a repository: the names of all, and what stands in one of them."""

    names: Collection[str]
    read: Callable[[str], str]
    _texts: dict[str, str] = field(default_factory=dict)

    def text(self, name: str) -> str:
        """Return what stands in a file, nothing if there is none."""
        if name not in self._texts:
            self._texts[name] = self.read(name) if name in self.names else ""
        return self._texts[name]

    def has(self, *names: str) -> bool:
        """Say whether one of these files is there."""
        return any(name in self.names for name in names)

    def first(self, names: Collection[str]) -> str:
        """Return what stands in the first of these files that is there."""
        return next((self.text(name) for name in names if name in self.names), "")

    def matches(self, pattern: str) -> bool:
        """Say whether a file's whole path matches."""
        search = re.compile(pattern).fullmatch
        return any(search(name) is not None for name in self.names)


def proposals(tree: Tree) -> tuple[str, ...]:
    """Return commands that seem to test a repository, the best first; nothing if none can be seen."""
    tests = (*_recipes(tree, TEST_TARGETS), *_python(tree), *_node(tree), *_others(tree))
    found = tests or tuple(_recipes(tree, ("check",)))
    if not tests and not tree.matches(TEST_FILES):
        found = (*found, *_recipes(tree, ("lint",)), *_linters(tree))
    return tuple(dict.fromkeys(found))[:MAX_PROPOSALS]


# What a repository calls its own


def _recipes(tree: Tree, wanted: Collection[str]) -> Iterator[str]:
    """Yield the targets of make, just and task by these names, or the ones that run them among others."""
    for program, needs in (
        ("make", _targets(tree.first(MAKEFILES))),
        ("just", _just(tree.first(JUSTFILES))),
        ("task", _tasks(tree.first(TASKFILES))),
    ):
        name = next((name for name in wanted if name in needs), None)
        if name is None:
            continue
        whole = (each for each in WHOLE if each not in wanted and name in needs.get(each, ()))
        yield f"{program} {next(whole, name)}"


def _targets(text: str) -> dict[str, list[str]]:
    """Return the targets of a makefile, each with what it needs."""
    found: dict[str, list[str]] = {}
    for names, needs in re.findall(r"(?m)^([A-Za-z0-9][\w ./-]*?)\s*::?(?!=)([^=\n]*)$", text.replace("\\\n", " ")):
        for name in names.split():
            found.setdefault(name, []).extend(needs.partition("#")[0].partition(";")[0].split())
    return found


def _just(text: str) -> dict[str, list[str]]:
    """Return the recipes of a justfile that need no argument, each with what it needs."""
    rule = r"(?m)^@?([A-Za-z][\w-]*)((?:[ \t]+[*+$]*\w+=\S+|[ \t]+\*\w+)*)[ \t]*:(?!=)([^\n#]*)"
    return {name: re.findall(r"[\w-]+", needs) for name, _, needs in re.findall(rule, text)}


def _tasks(text: str) -> dict[str, list[str]]:
    """Return the tasks of a Taskfile, each with what it needs as far as that stands in one line."""
    _, _, body = text.partition("\ntasks:")
    parts = re.split(r"(?m)^  ([\w-]+):", body)
    pairs = zip(parts[1::2], parts[2::2], strict=False)
    needs = {name: re.search(r"deps: *\[([^\]]*)\]", rest) for name, rest in pairs}
    return {name: re.findall(r"[\w-]+", found[1]) if found else [] for name, found in needs.items()}


# Python


def _python(tree: Tree) -> Iterator[str]:
    project, setup = tree.text("pyproject.toml"), tree.text("setup.cfg")
    if tree.has("tox.ini") or "[tool.tox" in project or "[tox:tox]" in setup:
        yield "tox -e py"
    if tree.has("noxfile.py"):
        sessions = re.findall(r"(?m)^def (\w+)\(\s*session\b", tree.text("noxfile.py"))
        tests = next((name for name in (*TEST_TARGETS, "unit", "pytest") if name in sessions), None)
        yield f"nox -s {tests}" if tests else "nox"
    own = f"{_sources(tree)}python3"
    if tree.has("manage.py") and not _uses_pytest(tree):
        yield f"{_runner(tree)}python manage.py test" if _runner(tree) else f"{own} manage.py test"
        return
    if not tree.matches(r"(?:.*/)?(?:test_[^/]*|[^/]*_test|tests)\.py"):
        return
    if _uses_pytest(tree):
        runner = _runner(tree)
        if runner:
            yield f"{runner}pytest -q"
        yield f"{own} -m pytest -q"
    elif tree.has("tests/__init__.py") or not tree.matches(r"tests/(?:.*/)?test[^/]*\.py"):
        yield f"{own} -m unittest"
    else:
        yield f"{own} -m unittest discover -s tests"


def _sources(tree: Tree) -> str:
    """Return what lets Python find the sources of the tree that is tested, before a copy of them that is installed.

    The path is a whole one, since tests start programs in other folders, too.
    """
    return 'PYTHONPATH="$PWD/src" ' if tree.matches(r"src/[^/]+/__init__\.py|src/[^/]+\.py") else ""


def _uses_pytest(tree: Tree) -> bool:
    """Say whether the tests are pytest's: its settings are there, something requires it, or a test imports it."""
    if tree.has("pytest.ini", ".pytest.ini") or tree.matches(r"(?:[^/]*/){0,2}conftest\.py"):
        return True
    lists = [name for name in tree.names if re.fullmatch(r"(?:requirements/)?[^/]*requirements[^/]*\.(?:txt|in)", name)]
    named = ("pyproject.toml", "setup.cfg", "setup.py", "tox.ini", "Pipfile", "environment.yml", *lists)
    if any("pytest" in tree.text(name) for name in named):
        return True
    tests = sorted(name for name in tree.names if re.fullmatch(r"(?:.*/)?(?:test_[^/]*|[^/]*_test)\.py", name))
    texts = [tree.text(name) for name in tests[:20]]
    is_plain = any(re.search(r"(?m)^(?:import|from) unittest\b", text) for text in texts)
    functions = any(re.search(r"(?m)^(?:async )?def test", text) for text in texts)
    return any(re.search(r"(?m)^(?:import|from) pytest\b", text) for text in texts) or (functions and not is_plain)


def _runner(tree: Tree) -> str:
    """Return what runs a program with what the lock file of a project holds."""
    if tree.has("uv.lock"):
        return "uv run --frozen "
    if tree.has("poetry.lock"):
        return "poetry install -q --no-interaction && poetry run "
    if tree.has("pdm.lock"):
        return "pdm install -q --frozen-lockfile && pdm run "
    return "pipenv sync --dev && pipenv run " if tree.has("Pipfile.lock") else ""


# Node


_IDLE = re.compile(r"no test specified|^\s*(?:echo\b[^&|;]*|true|:|exit 0)?\s*(?:&&\s*(?:exit [01]|true)\s*)?$")
_WATCHES = re.compile(r"(?:^|\s)--watch(?:All)?(?![\w=-])|(?:^|\s)-w(?:\s|$)|\bnodemon\b|--ui\b|cypress open")
_ONCE = ("test:ci", "ci:test", "test:run", "test:once", "test:unit", "unit")
_TEST_RUNNERS = (("vitest", "vitest run"), ("jest", "jest"), ("mocha", "mocha"), ("ava", "ava"))


@dataclass(frozen=True)
class _Manager:
    """A package manager: what installs what git ignores, what runs a script, and what stands before its arguments."""

    run: str
    install: str
    arguments: str = ""

    def call(self, script: str, arguments: str = "") -> str:
        """Return what runs a script."""
        return f"{self.run} {script}" + (f" {self.arguments}{arguments}" if arguments else "")


def _node(tree: Tree) -> Iterator[str]:
    if tree.has("deno.json", "deno.jsonc") and tree.matches(r"(?:.*/)?[^/]*[._]test\.(?:ts|js|tsx|jsx|mjs)"):
        yield "deno test"
    package = _package(tree)
    manager = _manager(tree, package)
    found = _script(package["scripts"], manager)
    if found:
        yield f"{manager.install}{found}"


def _package(tree: Tree) -> dict[str, dict[str, str]]:
    """Return what of package.json counts here, whatever stands in it."""
    try:
        said = json.loads(tree.text("package.json") or "{}")
    except (ValueError, RecursionError):
        said = {}
    parts = ("scripts", "dependencies", "devDependencies", "optionalDependencies")
    found = {name: said.get(name) if isinstance(said, dict) else None for name in parts}
    return {
        name: {key: text for key, text in part.items() if isinstance(text, str)} if isinstance(part, dict) else {}
        for name, part in found.items()
    }


def _script(scripts: dict[str, str], manager: _Manager) -> str | None:
    """Return how the tests are run once; None if nothing does that."""
    text = scripts.get("test", "")
    if not text or _IDLE.search(text):
        text = ""
    elif "react-scripts test" in text:
        return f"CI=true {manager.call('test')}"
    elif re.search(r"\bng test\b", text) and "--watch=false" not in text:
        return manager.call("test", "--watch=false")
    elif not _WATCHES.search(text):
        is_open = re.search(r"\bvitest\b(?! run)(?!.*--run)", text) is not None
        return manager.call("test", "--run" if is_open else "")
    once = next((name for name in _ONCE if scripts.get(name) and not _WATCHES.search(scripts[name])), None)
    if once:
        return manager.call(once)
    runner = next((command for name, command in _TEST_RUNNERS if re.search(rf"\b{name}\b", text)), None)
    return runner and f"npx --no-install {runner}"


def _manager(tree: Tree, package: dict[str, dict[str, str]]) -> _Manager:
    """Return the package manager whose lock file is there; it installs nothing where nothing is needed."""
    if tree.has("pnpm-lock.yaml"):
        found = _Manager("pnpm run", "pnpm install --frozen-lockfile --prefer-offline && ")
    elif tree.has("yarn.lock"):
        how = "--immutable" if tree.has(".yarnrc.yml") else "--frozen-lockfile --prefer-offline"
        found = _Manager("yarn run", f"yarn install {how} && ")
    elif tree.has("bun.lock", "bun.lockb"):
        found = _Manager("bun run", "bun install --frozen-lockfile && ")
    else:
        how = "ci" if tree.has("package-lock.json", "npm-shrinkwrap.json") else "install"
        found = _Manager("npm run", f"npm {how} --prefer-offline --no-audit --no-fund && ", "-- ")
    needs = any(package[name] for name in ("dependencies", "devDependencies", "optionalDependencies"))
    is_kept = any(name.startswith("node_modules/") for name in tree.names)
    return found if needs and not is_kept else replace(found, install="")


# Others


def _others(tree: Tree) -> Iterator[str]:
    if tree.has("Cargo.toml"):
        yield "cargo test --workspace" if "[workspace]" in tree.text("Cargo.toml") else "cargo test"
    if tree.has("go.mod", "go.work"):
        yield "go test ./..."
    if tree.has("gradlew"):
        yield "./gradlew test"
    elif tree.has("build.gradle", "build.gradle.kts"):
        yield "gradle test"
    if tree.has("pom.xml"):
        yield "./mvnw -B -q test" if tree.has("mvnw") else "mvn -B -q test"
    yield from _ruby(tree)
    if tree.has("mix.exs"):
        yield "mix test"
    if tree.has("composer.json"):
        yield from _php(tree)
    if tree.matches(r"(?:[^/]*/)?[^/]*\.(?:sln|slnx|csproj|fsproj)"):
        yield "dotnet test"
    if tree.has("Package.swift"):
        yield "swift test"
    if "enable_testing" in tree.text("CMakeLists.txt"):
        yield "cmake -S . -B build && cmake --build build && ctest --test-dir build --output-on-failure"
    if tree.has("stack.yaml"):
        yield "stack test"
    elif tree.matches(r"[^/]*\.cabal"):
        yield "cabal test all"
    if tree.has("dune-project"):
        yield "dune test"


def _ruby(tree: Tree) -> Iterator[str]:
    bundled = "bundle exec " if tree.has("Gemfile") else ""
    if tree.has(".rspec") or tree.matches(r"spec/(?:.*/)?[^/]*_spec\.rb"):
        yield f"{bundled}rspec"
    elif tree.has("bin/rails"):
        yield "bin/rails test"
    elif tree.has("Rakefile") and re.search(r"TestTask|task[ (]+:?\"?test\b|:spec\b", tree.text("Rakefile")):
        yield f"{bundled}rake test"


def _php(tree: Tree) -> Iterator[str]:
    try:
        scripts = json.loads(tree.text("composer.json") or "{}").get("scripts", {})
    except (ValueError, AttributeError, RecursionError):
        scripts = {}
    install = "" if tree.matches(r"vendor/.*") else "composer install -q --no-interaction && "
    if "test" in scripts:
        yield f"{install}composer test"
    elif tree.has("phpunit.xml", "phpunit.xml.dist"):
        yield f"{install}vendor/bin/phpunit"


def _linters(tree: Tree) -> Iterator[str]:
    """Yield what looks at the code where nothing tests it."""
    package = _package(tree)
    if package["scripts"].get("lint"):
        manager = _manager(tree, package)
        yield f"{manager.install}{manager.call('lint')}"
    if tree.has("ruff.toml", ".ruff.toml") or "[tool.ruff" in tree.text("pyproject.toml"):
        yield "ruff check"
    if tree.has(".pre-commit-config.yaml"):
        yield "pre-commit run --all-files"
