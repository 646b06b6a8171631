"""covey init, and where covey finds its project."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tomllib
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import pytest

from covey import config
from covey.cli.project.init import AGENTS, _older_toml, _written, toml
from covey.core.costs.spending import Price
from covey.git.project import find
from tests.worlds.shell import Shell


def _snapshot(folder: Path) -> dict[str, tuple[int, bytes]]:
    return {
        str(path.relative_to(folder)): (path.stat().st_mode, path.read_bytes())
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def test_init_makes_settings_state_board_and_token(bare_shell: Shell) -> None:
    said = bare_shell.ok("init")
    assert said.count("\n") == 5
    assert said.splitlines()[-1].startswith("  No gate is set: what agents hand in waits for your review")
    assert "covey task add" in said
    assert bare_shell.state.stat().st_mode & 0o777 == 0o700
    token = bare_shell.state / "owner.token"
    assert token.stat().st_mode & 0o777 == 0o600
    assert len(token.read_text().strip()) >= 40
    settings = config.load(bare_shell.folder)
    assert settings == replace(config.Config(), project=config.Project(main="trunk"))


COMMENTED = re.compile(r'# ((?:\w+|"\w+")(?:\.\w+)? = .*)')


def test_the_settings_name_every_default(bare_shell: Shell) -> None:
    bare_shell.ok("init")
    text = (bare_shell.folder / "covey.toml").read_text()
    lines = [line.removeprefix("# ") if COMMENTED.fullmatch(line) else line for line in text.splitlines()]
    read = config.parse("\n".join(lines))
    example = {"sh": config.AgentSettings(("bash", "{body_file}"))}
    defaults = replace(config.Config(), project=config.Project(main="trunk"), prices={"MODEL": Price()})
    known = {name: agent for name, agent in read.agents.items() if name in AGENTS}
    assert read == replace(defaults, agents=example | known)


def test_only_agents_that_are_on_the_machine_are_proposed() -> None:
    assert not any(name in toml("main").replace(f"else {config.DEFAULT_AGENT}", "") for name in AGENTS)
    text = toml("main", None, ["codex", "aider"])
    assert "\n# codex.model = " in text and "aider" not in text


def _headed(lines: list[str], number: int) -> str:
    """Return the header below which a line stands."""
    return next(line for line in reversed(lines[:number]) if line.startswith("["))


@pytest.mark.parametrize("check", [None, 'PYTHONPATH="$PWD" make test'])
def test_a_line_counts_in_its_table_once_the_mark_before_it_is_removed(check: str | None) -> None:
    lines = toml("main", check, ["codex"]).split("\n")
    headers = [line for line in lines if line.startswith("[")]
    assert len(headers) == len(set(headers)) and {f"[{table.name}]" for table in fields(config.Config)} <= set(headers)
    commented = [number for number, line in enumerate(lines) if COMMENTED.fullmatch(line)]
    assert len(commented) > 50
    for number in commented:
        line = lines[number].removeprefix("# ")
        text = "\n".join([*lines[:number], line, *lines[number + 1 :]])
        config.parse(text)
        table = tomllib.loads(f"{_headed(lines, number)}\n{line}")
        assert _merged(tomllib.loads("\n".join(lines)), table) == tomllib.loads(text), line


def _merged(one: dict[str, Any], other: dict[str, Any]) -> dict[str, Any]:
    both = {name: _merged(one[name], value) if name in one else value for name, value in other.items()}
    return one | both


@pytest.mark.parametrize("agents", [(), ("codex",)])
@pytest.mark.parametrize("check", [None, "make lint"])
def test_what_an_older_covey_wrote_is_known_as_its_own(
    bare_shell: Shell, check: str | None, agents: tuple[str, ...]
) -> None:
    older = _older_toml("trunk", check, agents)
    assert "\n# [sessions]\n" in older and config.parse(older) == config.parse(toml("trunk", check, agents))
    file = bare_shell.folder / "covey.toml"
    project = find(bare_shell.folder)
    for text, is_ours in ((older, True), (f"{older}# Mine.\n", False), (toml("trunk", check, agents), True)):
        file.write_text(text)
        assert _written(project, "trunk") == (text if is_ours else None)


def test_the_older_form_is_the_one_that_was_written() -> None:
    written = Path(__file__).with_name("older_covey.toml").read_text()
    assert _older_toml("trunk", "make test", ["codex"]) == written, "a description of a setting is part of the form"


APPENDED = """
[agents.mine]
command = ["bash", "{body_file}"]
env = ["LANG"]

[prices."some-model.1"]
input = 3
"""


def test_what_bears_a_name_can_be_appended_and_another_table_is_told_to_be_there(bare_shell: Shell) -> None:
    bare_shell.ok("init")
    file = bare_shell.folder / "covey.toml"
    text = file.read_text() + APPENDED
    file.write_text(text)
    assert config.load(bare_shell.folder) == replace(config.parse(APPENDED), project=config.Project(main="trunk"))
    file.write_text(f"{text}\n[merge]\ncheck = 'make test'\n")
    assert "[merge] is there twice: write what you set below one of them." in bare_shell.fails(2, "task", "list")


@pytest.mark.parametrize("holds", [False, True])
def test_a_gate_is_set_if_it_works_and_else_only_proposed(holds: bool) -> None:
    text = toml("main", "make test", holds=holds)
    assert config.parse(text).merge.check == ("make test" if holds else "")
    assert replace(config.parse(text), merge=config.Merge()) == config.Config()
    lines = [line.removeprefix("# ") if line.startswith("# check = ") else line for line in text.split("\n")]
    assert config.parse("\n".join(lines)).merge.check == "make test", "one mark is removed, and it counts"
    assert lines[lines.index("[merge]") + 1].startswith('check = "make test"')


@pytest.mark.parametrize(
    "check",
    ['PYTHONPATH="$PWD/src" python3 -m pytest', 'echo "it\'s"', "a 'b'", 'a\tb \\ "c"', "\N{GRINNING FACE} x", "a\x7fb",
     "a\u2028b\x85c\U000e0001d", '"\x7f\0"'],
)  # fmt: skip
def test_a_gate_is_written_as_it_is_whatever_it_is_made_of(check: str) -> None:
    text = toml("main", check, holds=True)
    assert config.parse(text).merge.check == check
    assert config.parse(toml("main", f"{check}'", holds=True)).merge.check == f"{check}'"
    assert config.parse(toml(check)).project.main == check
    assert "".join(text.split("\n")).isprintable()


def test_init_says_which_gate_it_proposes(bare_shell: Shell) -> None:
    (bare_shell.folder / "Makefile").write_text("test:\n\ttrue\n")  # which is not on main
    answer = bare_shell.json("init", "--no-try")
    assert (answer["check"], answer["holds"], answer["gate"]) == ("make test", False, None)
    assert config.load(bare_shell.folder).merge.check == ""
    done = bare_shell.run("init", "--check")
    assert done.returncode == 1 and "merge.check is not set" in done.stdout and 'Trying "make test"' in done.stdout
    assert 'It does not hold yet: check = "make test"' in done.stdout
    assert "not allowed with" in bare_shell.fails(2, "init", "--check", "--no-try")


def test_init_refuses_a_repository_with_submodules_and_begins_nothing(bare_shell: Shell, tmp_path: Path) -> None:
    library = bare_shell.at(tmp_path / "library")
    library.folder.mkdir()
    library.git("init", "-q", "-b", "main")
    library.git("commit", "-q", "--allow-empty", "-m", "begin")
    bare_shell.git("-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(library.folder), "lib")
    bare_shell.git("commit", "-q", "-m", "Use the library")
    hint = "Submodules are not supported."
    assert "trunk has submodules" in bare_shell.fails(5, "init") and hint in bare_shell.fails(5, "init")
    assert hint in bare_shell.fails(5, "status") and hint in bare_shell.fails(5, "run", "One")
    assert not bare_shell.state.exists()
    assert not (bare_shell.folder / "covey.toml").exists()


def test_a_second_init_changes_nothing_and_says_so(shell: Shell) -> None:
    shell.ok("task", "add", "Keep me")
    (shell.folder / "covey.toml").write_text("[board]\nclaim_ttl = 7\n")
    before = _snapshot(shell.folder)
    said = shell.ok("init").splitlines()
    assert "nothing was changed" in said[0] and said[-1].startswith("  No gate is set: ")
    assert json.loads(shell.ok("init", "--json"))["made"] == []
    after = _snapshot(shell.folder)
    assert before == after


def test_a_board_that_was_emptied_is_begun_anew_by_init_alone(shell: Shell) -> None:
    shell.ok("task", "add", "One")
    for name in ("covey.db-wal", "covey.db-shm"):
        (shell.state / name).unlink(missing_ok=True)
    (shell.state / "covey.db").write_bytes(b"")
    for words in (["task", "list"], ["log", "verify"], ["up"]):
        assert "covey does not look after" in shell.fails(5, *words), words
    assert shell.json("init")["made"] == ["the board"]
    assert shell.json("task", "list") == []
    assert shell.ok("log", "verify").startswith("1 event and ")


def test_ten_inits_at_once_make_one_board(bare_shell: Shell) -> None:
    started = [
        subprocess.Popen(
            [sys.executable, "-m", "covey", "init", "--json"],
            cwd=bare_shell.folder,
            env=bare_shell.env,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        for _ in range(10)
    ]
    said = [process.communicate(timeout=120) for process in started]
    assert [process.returncode for process in started] == [0] * 10, said
    made = [what for out, _ in said for what in json.loads(out)["made"]]
    assert sorted(made) == ["covey.toml", "the board", "the owner's token"]
    assert [event["kind"] for event in bare_shell.json("log")] == ["log.begun"]


def test_a_folder_that_is_no_repository_is_refused_in_one_sentence(bare_shell: Shell, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    for words in (("init",), ("task", "list"), ("status",), ("up",)):
        assert "is in no git repository." in bare_shell.at(elsewhere).fails(2, *words)


def test_a_repository_without_covey_says_how_to_begin(bare_shell: Shell) -> None:
    assert "covey init" in bare_shell.fails(5, "task", "list")
    assert not bare_shell.state.exists()


def test_every_worktree_and_subfolder_has_the_same_board(shell: Shell, tmp_path: Path) -> None:
    shell.ok("task", "add", "Shared")
    deep = shell.folder / "a" / "b"
    deep.mkdir(parents=True)
    linked = tmp_path / "linked"
    shell.git("worktree", "add", "-q", str(linked))
    inner = linked / "c"
    inner.mkdir()
    for folder in (deep, linked, inner, shell.folder / ".git", shell.state):
        assert [task["title"] for task in shell.at(folder).json("task", "list")] == ["Shared"], folder
    assert "nothing was changed" in shell.at(linked).ok("init")
    assert not (linked / "covey.toml").exists()
    assert shell.at(tmp_path).json("-C", str(linked), "task", "list") == shell.json("task", "list")
    assert shell.at(tmp_path).json("task", "list", "-C", str(deep)) == shell.json("task", "list")


def test_a_bare_repository_has_a_board(bare_shell: Shell, tmp_path: Path) -> None:
    folder = tmp_path / "store.git"
    bare_shell.git("clone", "-q", "--bare", str(bare_shell.folder), str(folder))
    bare = bare_shell.at(folder)
    assert bare.json("init")["project"] == "store"
    bare.ok("task", "add", "In the bare one")
    assert [task["title"] for task in bare.json("task", "list")] == ["In the bare one"]
    assert config.load(folder).project.main == "trunk"


def test_a_submodule_has_a_board_of_its_own(shell: Shell, tmp_path: Path) -> None:
    library = shell.at(tmp_path / "library")
    library.folder.mkdir()
    library.git("init", "-q", "-b", "main")
    library.git("commit", "-q", "--allow-empty", "-m", "begin")
    shell.git("-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(library.folder), "lib")
    inside = shell.at(shell.folder / "lib")
    assert "covey init" in inside.fails(5, "task", "list")
    inside.ok("init")
    inside.ok("task", "add", "Of the library")
    shell.ok("task", "add", "Of the shop")
    assert [task["title"] for task in inside.json("task", "list")] == ["Of the library"]
    assert [task["title"] for task in shell.json("task", "list")] == ["Of the shop"]


def test_two_repositories_do_not_meet(shell: Shell, tmp_path: Path) -> None:
    other = shell.at(tmp_path / "other")
    other.folder.mkdir()
    other.git("init", "-q")
    other.ok("init")
    shell.ok("task", "add", "Here")
    assert other.json("task", "list") == []


def test_a_typo_in_the_settings_names_its_line(shell: Shell) -> None:
    (shell.folder / "covey.toml").write_text("[board]\nclaim_tll = 7\n")
    said = shell.fails(2, "task", "list")
    assert "covey.toml line 2" in said
    assert "claim_ttl" in said


def test_init_in_a_clone_says_what_its_settings_have(bare_shell: Shell) -> None:
    (bare_shell.folder / "Makefile").write_text("test:\n\ttrue\n")
    settings = bare_shell.folder / "covey.toml"
    settings.write_text('[merge]\ncheck = "make test"\n[agents.sh]\ncommand = ["bash", "{body_file}"]\n')
    said = bare_shell.ok("init")
    assert '  covey.toml                has the gate "make test" and the agent sh\n' in said
    assert "proposed" not in said and "name your agent" not in said and "No gate is set" not in said


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ('[merge]\ncheck = "make test"\n', 'has the gate "make test"; name your agent ('),
        ('[sessions]\nagent = "codex"\n', "has the agent codex; name under [merge] a check that tests what lands\n"),
        ("[agents.codex]\nmodel = 'x'\n", "a check that tests what lands\n"),
    ],
)
def test_init_asks_for_nothing_that_is_set(bare_shell: Shell, text: str, told: str) -> None:
    (bare_shell.folder / "Makefile").write_text("test:\n\ttrue\n")
    (bare_shell.folder / "covey.toml").write_text(text)
    assert told in bare_shell.ok("init", "--no-try")


def test_a_repository_without_a_commit_needs_one_first(bare_shell: Shell, tmp_path: Path) -> None:
    assert "git commit" not in bare_shell.ok("init")
    empty = bare_shell.at(tmp_path / "empty")
    empty.folder.mkdir()
    empty.git("init", "-q", "-b", "main")
    assert 'git commit --allow-empty -m "Begin"   comes first: main has no commit yet' in empty.ok("init")
    empty.git("commit", "-q", "--allow-empty", "-m", "Begin")
    assert "no commit yet" not in empty.run("run", "--agent", "nobody", "One").stderr
