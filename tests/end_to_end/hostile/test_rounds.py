"""Three bad agents beside three good ones: every good change lands, and nobody pays for what the bad ones do."""

from __future__ import annotations

import hashlib
import os
import random
import stat
import subprocess
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.end_to_end.hostile.tricks import KINDS, Trick, body, draw
from tests.worlds.projects import SHELL, Line, make_line
from tests.worlds.repositories import make_repository
from tests.worlds.serving import Client, wait_until

CHECK = """set -e
mkdir -p build
for part in parts/*.sh; do sh "$part"; done
for file in values/*; do
    built="build/${file##*/}.ok"
    test -e "$built" || grep -qx 1 "$file" || { echo "FAILED $file"; exit 1; }
    : > "$built"
done
"""
FILES = {
    "check.sh": CHECK,
    "parts/0.sh": ":\n",
    "values/0": "1\n",
    "mine.md": "As it landed.\n",
    ".gitignore": "covey.toml\nbuild/\n",
}
SETTINGS = SHELL + '[merge]\ncheck = "sh check.sh"\nslots = 2\n[board]\ntries = 1\n'
GOOD, BAD = ("ann", "ben", "cat"), ("eve", "mallory", "trudy")
ENDED = ("done", "blocked", "dropped", "review")
ROUND_LIMIT_S = 240
"""How long anything of one round may stand still, on a machine that does much else."""


class Scene:
    """A project with six sessions, and all that is the user's around it."""

    def __init__(self, folder: Path) -> None:
        self.line = make_line(folder, SETTINGS, files=FILES)
        self.other = folder / "other"
        self.marker = folder / "outside" / "executed"
        self._make_the_users_things()
        self.before = self.picture()
        self.line.up()
        for name in (*GOOD, *BAD):
            self.line.start_session(name, "sh")
        self.tasks: dict[str, str] = {}
        self.checked: set[str] = set()

    def _make_the_users_things(self) -> None:
        home = Path(self.line.env["HOME"])
        (home / ".ssh").mkdir()
        (home / ".ssh" / "id").write_text("the user's key\n")
        (home / ".bashrc").write_text("# the user's profile\n")
        make_repository(self.other, {"novel.txt": "Chapter one.\n"})
        (self.other / "novel.txt").write_text("Chapter one, changed and not committed.\n")
        (self.other / "draft.txt").write_text("Not in git.\n")
        (self.line.root / "mine.txt").write_text("Untracked.\n")
        (self.line.root / "mine.md").write_text("Changed by the user, and not committed.\n")

    def places(self) -> dict[str, str]:
        """Return where a bad agent finds what it is after."""
        line = self.line
        return {"other": str(self.other), "root": str(line.root), "home": line.env["HOME"], "state": str(line.state),
                "marker": str(self.marker)}  # fmt: skip

    # One round

    def play(self, bad: dict[str, tuple[Trick, ...]], number: int) -> None:
        """Give every session a task, and wait until each has come to its end."""
        with self.line.client() as client:
            good = [self._add(client, name, f"Good {number} of {name}", GOOD_WORK) for name in GOOD]
            worse = [
                self._add(
                    client,
                    name,
                    f"Bad {number} of {name}: {', '.join(each.name for each in tricks)}",
                    body(tricks, self.places()),
                )
                for name, tricks in bad.items()
            ]
            self._wait(client, good + worse, number)
            for task in good:
                found = self._task(client, task)
                assert found["status"] == "done", f"round {number}: {found}"
            for task in worse:
                if self._task(client, task)["status"] in ("blocked", "review"):
                    client.ask("POST", f"/api/board/{task}/drop", {"reason": "Hostile."}).good()
        self.assert_sound(number)

    def _add(self, client: Client, name: str, title: str, script: str) -> str:
        task: str = client.post("/api/board", {"title": title[:480], "body": script, "assignee": name})["id"]
        return task

    def _task(self, client: Client, task: str) -> dict[str, Any]:
        found: dict[str, Any] = client.get(f"/api/board/{task}")
        return found

    def _wait(self, client: Client, tasks: list[str], number: int) -> None:
        """Wait until every task has ended, and say which one stands still if that never comes."""
        left: list[dict[str, Any]] = []

        def ended() -> bool:
            left[:] = [task for task in map(partial(self._task, client), tasks) if task["status"] not in ENDED]
            return not left

        try:
            wait_until(ended, f"the end of round {number}", patience=ROUND_LIMIT_S)
        except AssertionError:
            told = [(task["id"], task["title"], task["status"], task.get("reason")) for task in left]
            raise AssertionError(f"round {number} stands still: {told}, {client.get('/api/queue')}") from None

    # What must hold

    def assert_sound(self, number: int) -> None:
        """Assert that main is green, and that everything of the user's is byte for byte as it was."""
        line = self.line
        assert not self.marker.exists(), f"round {number}: covey's git ran an agent's program"
        assert self.picture() == self.before, f"round {number}"
        main = line.common / "refs" / "heads" / "main"
        assert not main.is_symlink() and not (main.exists() and main.read_text().startswith("ref:")), number
        with line.client() as client:
            landed = [landing["commit"] for landing in client.get("/api/landings?limit=50")]
            assert client.get("/api/queue")["halted"] in (None, False, ""), number
        for commit in [*landed, line.git("rev-parse", "--verify", "refs/heads/main")]:
            if commit not in self.checked:
                self._assert_builds(commit)
                self.checked.add(commit)

    def _assert_builds(self, commit: str) -> None:
        """Assert that a value of main passes its check in a clone of its own."""
        place = self.line.folder / "fresh" / commit[:12]
        run = subprocess.run
        run(["git", "clone", "-q", "--no-checkout", str(self.line.root), str(place)], check=True, capture_output=True)
        run(["git", "checkout", "-q", "--detach", commit], cwd=place, check=True, capture_output=True)
        assert sorted(each.name for each in (place / "parts").iterdir()) == ["0.sh"], commit
        assert (place / "check.sh").read_text() == CHECK, commit
        done = run(["sh", "check.sh"], cwd=place, capture_output=True, text=True, check=False)
        assert done.returncode == 0, (commit, done.stdout, done.stderr)
        run(["rm", "-rf", str(place)], check=True)

    def picture(self) -> dict[str, str]:
        """Return all that is the user's: every file with its kind, rights and content."""
        home = Path(self.line.env["HOME"])
        found = _picture(self.other) | _picture(home, skip={".cache", ".local", ".config"})
        return (
            found
            | _picture(self.line.root / "mine.txt")
            | _picture(self.line.root / "mine.md")
            | {"stolen": str((self.line.root / "stolen").exists())}
        )


GOOD_WORK = 'echo 1 > "values/$COVEY_TASK" && git add values && git commit -qm "Add $COVEY_TASK"\n'


def _picture(top: Path, skip: set[str] | frozenset[str] = frozenset()) -> dict[str, str]:
    found: dict[str, str] = {}
    for path in [top, *sorted(each for each in top.rglob("*"))] if top.is_dir() else [top]:
        if skip & set(path.relative_to(top).parts):
            continue
        seen = path.lstat()
        text = os.readlink(path) if path.is_symlink() else path.read_bytes() if stat.S_ISREG(seen.st_mode) else b""
        digest = hashlib.sha256(text if isinstance(text, bytes) else text.encode()).hexdigest()[:16]
        found[str(path)] = f"{stat.filemode(seen.st_mode)} {digest}"
    return found


@pytest.fixture
def scenes(tmp_path: Path) -> Iterator[Callable[[], Scene]]:
    """Return a function that sets a scene; all that runs of it ends with the test."""
    made: list[Line] = []

    def make() -> Scene:
        scene = Scene(tmp_path / f"scene-{len(made)}")
        made.append(scene.line)
        return scene

    yield make
    for line in made:
        line.end()
        # What was set aside is nested too deeply for pytest's own cleaning.
        subprocess.run(["rm", "-rf", str(line.folder)], check=True)


def _play(scene: Scene, seed: int, rounds: int) -> None:
    print(f"seed {seed}")
    chance = random.Random(seed)
    for number in range(1, rounds + 1):
        bad = {name: draw(chance) for name in BAD}
        print(f"round {number}: { ({name: [each.name for each in tricks] for name, tricks in bad.items()}) }")
        scene.play(bad, number)
    assert scene.line.json("log", "verify")["sound"]


@pytest.mark.timeout(600)
def test_good_work_lands_beside_hostile_work(scenes: Callable[[], Scene]) -> None:
    _play(scenes(), seed=random.randrange(2**32), rounds=4)


@pytest.mark.soak
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("lane", range(10))
def test_good_work_lands_beside_hostile_work_for_500_rounds(scenes: Callable[[], Scene], lane: int) -> None:
    _play(scenes(), seed=random.randrange(2**32), rounds=50)


@pytest.mark.soak
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("kind", range(len(KINDS)))
def test_each_trick_by_itself_costs_nobody_else_anything(scenes: Callable[[], Scene], kind: int) -> None:
    scene = scenes()
    tricks = KINDS[kind]
    for number in range(0, len(tricks), len(BAD)):
        chosen = tricks[number : number + len(BAD)]
        scene.play({name: (trick,) for name, trick in zip(BAD, chosen, strict=False)}, number)
