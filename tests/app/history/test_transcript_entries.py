"""What runs said and did as entries: from a stream, from plain lines, and from what was kept, without secrets."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from covey.agents import registry
from covey.app.history import transcript_entries, transcripts
from covey.app.history.transcript_entries import Entry, from_lines, from_output
from covey.core.fleet.launches import Launch
from covey.core.fleet.signals import (
    Asks,
    Called,
    Calls,
    Compacts,
    Failed,
    Limited,
    Result,
    Said,
    Signal,
    Spent,
    Total,
    Trouble,
    Usage,
)
from covey.loops.fleet.close import keep_transcript
from tests.worlds.boards import World
from tests.worlds.serving import wait_until

SECRET = "ghp_" + "a1" * 18
RECORDED = Path(__file__).parents[2] / "agents" / "claude"


def entry(signal: Signal) -> Entry:
    """Return the entry that one signal is worth."""
    telling = transcript_entries.Telling()
    telling.take(7, [signal])
    (found,) = telling.entries
    return found


def test_every_signal_that_people_care_for_is_an_entry() -> None:
    assert entry(Said("Hello")) == Entry(7, "said", "Hello")
    assert entry(Calls("c1", "Edit", "a.py #0123456789", "-a\n+b")) == Entry(
        7, "tool", tool="Edit", about="a.py", call="c1", edit="-a\n+b"
    )
    assert entry(Called("c1", failed=True)) == Entry(7, "result", call="c1", failed=True)
    assert entry(Asks("Which?", choices=("red", "blue"))) == Entry(7, "asks", "Which?\n1. red\n2. blue")
    assert entry(Result("All done")) == Entry(7, "done", "All done")
    assert entry(Spent("m1", Usage(10, 5), "opus", 0.5)) == Entry(
        7, "cost", call="m1", model="opus", tokens=15, cost=0.5
    )
    assert entry(Total(Usage(10), "opus")).call == "total"
    assert entry(Limited(Trouble.LIMIT, "too many", again_in=3)).failed
    assert "gave up" in entry(Failed("no key", Trouble.KEY)).text
    assert entry(Compacts()).kind == "note"


def test_pieces_of_a_message_are_one_and_the_last_word_on_a_cost_counts() -> None:
    telling = transcript_entries.Telling()
    telling.take(0, [Said("Hel", piece=True), Said("lo", piece=True), Spent("m", Usage(1)), Spent("m", Usage(3))])
    assert [(each.kind, each.text, each.tokens) for each in telling.entries] == [("said", "Hello", 0), ("cost", "", 3)]


def test_a_recorded_stream_is_read_with_its_tools_edits_and_costs() -> None:
    data = (RECORDED / "permission.jsonl").read_bytes()
    found = from_output(data, 0, registry.find("claude", {}).read)
    kinds = {each.kind for each in found}
    assert {"said", "tool", "asks", "cost", "done"} <= kinds
    written = next(each for each in found if each.tool == "Write" and each.kind == "tool")
    assert (written.about, written.edit) == ("hello.txt", "+hello from the fake model")
    assert all(data[each.place : each.place + 1] == b"{" for each in found)


@given(st.lists(st.sampled_from(["- said\n  more\n", "> shell: make\n", "? Which?\n", "! failed: x\n", "= done\n"])))
def test_a_kept_transcript_has_one_entry_for_each_mark_and_all_of_its_text(parts: list[str]) -> None:
    found = from_lines("".join(parts), 3)
    assert len(found) == len(parts)
    marks = {"-": "said", ">": "tool", "?": "asks", "!": "note", "=": "done"}
    assert [each.kind for each in found] == [marks[part[0]] for part in parts]
    assert [each.place for each in found] == [3 + len("".join(parts[:i])) for i in range(len(parts))]


@given(st.binary(max_size=200), st.integers(0, 250))
def test_no_output_of_any_bytes_fails_or_shows_a_control_character(data: bytes, since: int) -> None:
    def output(start: int) -> tuple[bytes, int]:
        return data[start:], len(data)

    part = transcripts.lines_from(output, since, len(data), alive=False)
    found = from_output(part.data, part.start, registry.find("claude", {}).read)
    found += from_lines(data.decode(errors="replace"), 0) + transcript_entries._printed(
        data.decode(errors="replace"), 0
    )
    assert not any("\x1b" in each.text for each in found)


# Through the verb


@pytest.fixture
def started(world: World, tmp_path: Path) -> Callable[[str, str], Path]:
    """Return what starts the run of a session that prints something, and returns its folder when it has ended."""

    def start(agent: str, text: str) -> Path:
        world.add()
        world.at_work("ada", agent)
        run = world.begin("ada")
        file = tmp_path / "printed"
        file.write_text(text)
        world.app.context.runs = tmp_path / "runs"
        world.runner.start(run.id, Launch(argv=("/bin/cat", str(file)), cwd="/"))
        wait_until(lambda: not world.runner.look(run.id).alive, "its end")
        return tmp_path / "runs" / run.id

    return start


def test_a_transcript_is_read_in_parts_from_anywhere_without_secrets(
    world: World, started: Callable[[str, str], Path]
) -> None:
    said = {"type": "assistant", "message": {"id": "m", "content": [{"type": "text", "text": f"key {SECRET}"}]}}
    folder = started("claude", "".join(f"{json.dumps(said)}\n" for _ in range(3)))
    (folder / "prompt.md").write_text(f"Mend it with {SECRET}")
    answer = world.ask("session.transcript", name="ada")
    assert [each["kind"] for each in answer["entries"]] == ["told", "said", "said", "said"]
    assert SECRET not in json.dumps(answer)
    assert (answer["start"], answer["alive"]) == (0, False)
    last = world.ask("session.transcript", name="ada", since=-5)
    assert len(last["entries"]) == 1
    assert last["entries"][0]["place"] == answer["entries"][-1]["place"] == last["start"]
    assert last["next"] == answer["next"]
    assert world.ask("session.transcript", name="ada", since=answer["next"])["entries"] == []


def test_what_was_kept_of_a_run_is_entries_too_when_its_output_is_gone(
    world: World, started: Callable[[str, str], Path]
) -> None:
    folder = started("claude", "")
    keep_transcript(folder, ["- Hello", "  there", "> shell: make test", "= done"])
    (folder / "output").unlink(missing_ok=True)
    answer = world.ask("session.transcript", name="ada")
    assert [(each["kind"], each.get("text", "")) for each in answer["entries"]] == [
        ("said", "Hello\nthere"),
        ("tool", ""),
        ("done", "done"),
    ]
    assert answer["entries"][1]["about"] == "make test"
    assert world.ask("session.transcript", name="ada", since=answer["next"])["entries"] == []


def test_plain_lines_are_shown_as_they_are_but_for_what_moves_a_cursor(
    world: World, started: Callable[[str, str], Path]
) -> None:
    started("scripted", "- no mark\n\x1b[31mred\x1b[0m \x1b]0;title\x07end\n")
    (only,) = world.ask("session.transcript", name="ada")["entries"]
    assert (only["kind"], only["text"]) == ("printed", "- no mark\nred end\n")


def test_what_a_program_says_in_covey_s_words_among_plain_lines_is_told_apart(
    world: World, started: Callable[[str, str], Path]
) -> None:
    signals = ['{"covey": "calls", "id": "c1", "tool": "Edit", "about": "a.py"}', '{"covey": "ask", "text": "Go on?"}']
    started("scripted", f"one\n{signals[0]}\n{{no signal}}\ntwo\n{signals[1]}\n")
    found = world.ask("session.transcript", name="ada")["entries"]
    assert [(each["kind"], each.get("text", ""), each["place"]) for each in found] == [
        ("printed", "one\n", 0),
        ("tool", "", 4),
        ("printed", "{no signal}\ntwo\n", 5 + len(signals[0])),
        ("asks", "Go on?", 5 + len(signals[0]) + 16),
    ]
