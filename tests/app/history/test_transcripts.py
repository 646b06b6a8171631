"""What runs printed, as people read it: in whole lines from anywhere on, without secrets, and kept when it is gone."""

from __future__ import annotations

import gzip
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from covey import trash
from covey.agents import registry
from covey.app.history import transcripts
from covey.app.history.leftovers import old_outputs
from covey.app.history.run_streams import Output
from covey.config import Log
from covey.core import nouns
from covey.core.fleet import runs
from covey.core.fleet.launches import Launch
from covey.core.fleet.outcomes import Again, in_short
from covey.core.fleet.runs import Run
from covey.core.fleet.signals import Said, Signal
from covey.core.texts import redact
from covey.errors import Refused, Unavailable
from covey.loops.fleet.close import end_of, keep_transcript, transcript_of
from tests.worlds.boards import World
from tests.worlds.serving import wait_until

SECRET = "ghp_" + "a1" * 18
KEY = "\n".join(["-----BEGIN RSA PRIVATE KEY-----", *["MIIEow" * 10] * 20, "-----END RSA PRIVATE KEY-----"])
RECORDED = Path(__file__).parents[2] / "agents" / "claude" / "permission.jsonl"


def printed(data: bytes, part: int = 7) -> Output:
    """Return what reads these bytes in small parts."""
    return lambda since: (data[since : since + part], since + len(data[since : since + part]))


def test_of_an_output_that_somebody_made_endless_the_rest_is_left_out() -> None:
    size = 64 * 1024**2
    lines = list(transcripts.whole(lambda since: (b"\0" * 1000 + b"\n", since + size), None))
    assert len(lines) < 20
    assert lines[-1] == "! the rest, beyond 256 MiB, is left out"


WORDS = [
    '{"covey": "calls", "id": "1", "tool": "shell", "about": "make"}',
    '{"covey": "called", "id": "1", "result": "built"}',
    '{"covey": "spent", "call": "c1", "output": 3}',
    '{"covey": "failed", "text": "It broke."}',
]
READ = ["> shell: make", "  built", "! gave up (other): It broke."]


def test_a_program_that_says_some_things_in_our_words_is_read_without_json() -> None:
    data = "\n".join(["building", *WORDS[:3], '{"its": "own"}', WORDS[3], "bye"]).encode()
    shown = ["building", *READ[:2], '{"its": "own"}', READ[2], "bye"]
    read = registry.find("scripted", {}).read
    text, following = transcripts.plain(printed(data, 10_000), read, 0, len(data), alive=False)
    assert (text, following) == ("\n".join(shown), len(data))
    assert list(transcripts.whole(printed(data, 10_000), None, read)) == shown


def test_a_word_that_has_not_ended_waits_for_its_end_and_a_prompt_does_not() -> None:
    read = registry.find("scripted", {}).read
    whole = f"Name? {WORDS[0]}\n{WORDS[3]}\n".encode()
    half = whole[: -len(WORDS[3]) // 2]
    text, following = transcripts.plain(printed(half, 10_000), read, 0, len(half), alive=True)
    assert (text, following) == (f"Name? {WORDS[0]}\n", half.rindex(b"\n") + 1)
    rest, _ = transcripts.plain(printed(whole, 10_000), read, following, len(whole), alive=True)
    assert rest == f"{READ[2]}\n"
    assert transcripts.plain(printed(b"Name? "), read, 0, 6, alive=True) == ("Name? ", 6)


@pytest.mark.parametrize(
    ("agent", "lines", "last"),
    [
        ("scripted", ["building", *WORDS], "gave up (other): It broke."),
        ("codex", ['{"type":"turn.started"}'], ""),
        ("gemini", ["Error: Invalid API key"], "Error: Invalid API key"),
        ("gemini", ['{"type":"init","session_id":"1"}', "Error: no", '{"type":"odd"}'], "Error: no"),
        ("opencode", [*['{"type":"odd","x":"%s"}' % ("x" * 999)] * 99, "Error: no such model"], "Error: no such model"),
        ("codex", (RECORDED.parents[1] / "codex" / "work.jsonl").read_text().splitlines(), "The roof is on."),
        ("gemini", (RECORDED.parents[1] / "gemini" / "edits.jsonl").read_text().splitlines(), "Done."),
    ],
)
def test_the_story_of_a_run_ends_in_words(tmp_path: Path, agent: str, lines: list[str], last: str) -> None:
    data = "".join(f"{line}\n" for line in lines).encode()

    class Printed:
        """A run that has printed this."""

        def output(self, run_id: str, since: int) -> tuple[bytes, int]:
            """Return all from a place on."""
            return data[since:], len(data)

    run = Run(id="run-1", ordinal=1, session="ada", task="T-1", fence=1, agent=agent)
    told = end_of(Printed(), tmp_path, run, registry.find(agent, {}), len(data))  # type: ignore[arg-type]
    assert "{" not in told
    assert in_short(f"It ended.\nThe end of its output:\n{told}") == (
        f"It ended. Its last line was: {last}" if last else "It ended."
    )


def say(line: str) -> list[Signal]:
    """Read a line as something said."""
    return [Said(line)]


def every_part(read: Callable[[int], tuple[str, int]], since: int = 0) -> list[str]:
    """Return all parts, as one who follows gets them."""
    parts: list[str] = []
    while True:
        text, following = read(since)
        if following == since:
            return parts
        parts.append(text)
        since = following


# As it was printed


@given(st.text(st.characters(codec="utf-8"), max_size=12), st.data())
def test_output_that_is_cut_anywhere_is_the_same_text_when_it_is_put_together(text: str, data: st.DataObject) -> None:
    whole = text.encode()
    cut = data.draw(st.integers(0, len(whole)))
    first, following = transcripts._whole(whole[:cut], cut)
    assert following == len(first)
    assert first.decode() + whole[following:].decode() == text
    assert cut - following < 4


@pytest.mark.parametrize("secret", [SECRET, KEY], ids=["token", "key"])
def test_no_part_shows_a_secret_wherever_one_begins_to_read(secret: str) -> None:
    data = f"söme wörds\nand {secret} there\nand more".encode()
    for since in range(len(data) + 1):
        text, _ = transcripts.raw(printed(data, 10_000), since, len(data), alive=False)
        assert not any(secret[i : i + 6] in text for i in range(4, len(secret) - 6)), since


@given(st.lists(st.text(st.characters(codec="utf-8", exclude_characters="\n"), max_size=9), max_size=6), st.data())
def test_the_parts_of_what_was_printed_are_the_whole(lines: list[str], data: st.DataObject) -> None:
    whole = "\n".join(lines).encode()
    output = printed(whole, data.draw(st.integers(4, 30)))
    parts = every_part(lambda since: transcripts.raw(output, since, len(whole), alive=False))
    assert "".join(parts) == redact(whole.replace(b"\r\n", b"\n").decode())


# As a transcript


@given(st.lists(st.text(st.sampled_from("abü€ "), max_size=9), max_size=6), st.data())
def test_from_anywhere_on_a_transcript_has_whole_lines(lines: list[str], data: st.DataObject) -> None:
    whole = "".join(f"{line}\n" for line in lines).encode()
    output = printed(whole, data.draw(st.integers(1, 30)))
    told = [f"- {line.strip()}".rstrip() for line in lines if line]

    def read(since: int) -> tuple[str, int]:
        return transcripts.readable(output, say, since, len(whole), alive=False)

    assert "".join(every_part(read)).splitlines() == told
    since = data.draw(st.integers(0, len(whole)))
    rest = "".join(every_part(read, since)).splitlines()
    passed = whole[:since].decode(errors="ignore").count("\n")
    assert rest == ([f"- {line.strip()}".rstrip() for line in lines[passed:] if line] if since < len(whole) else [])


def test_a_line_that_has_not_ended_waits_for_its_end_while_the_run_lives() -> None:
    data = b"one\ntw"
    output = printed(data, 100)
    assert transcripts.readable(output, say, 0, len(data), alive=True) == ("- one\n", 4)
    assert transcripts.readable(output, say, 4, len(data), alive=True) == ("", 4)
    assert transcripts.readable(output, say, 4, len(data), alive=False) == ("- tw\n", 6)
    assert transcripts.readable(output, say, 6, len(data), alive=False) == ("", 6)


def test_a_line_that_is_too_long_for_anybody_is_passed_over(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transcripts, "LINE", 100)
    monkeypatch.setattr(transcripts, "BACK", 20)
    data = b"one\n" + b"x" * 1000 + b"\ntwo\n"
    parts = every_part(lambda since: transcripts.readable(printed(data, 30), say, since, len(data), alive=True))
    assert [line for line in "".join(parts).splitlines() if not line.startswith("! ")] == ["- one", "- two"]


def test_the_whole_transcript_is_redacted_also_where_parts_meet() -> None:
    text = f"before\n{KEY}\nthe token {SECRET}\nafter".encode()
    for part in (5, 64, 600, 5000):
        assert list(transcripts.whole(printed(text, part), None)) == [
            "before", "[secret removed]", "the token [secret removed]", "after",
        ], part  # fmt: skip
        told = list(transcripts.whole(printed(text, part), say))
        assert told[0] == "- before" and told[-2:] == ["- the token [secret removed]", "- after"]


def test_the_transcript_of_real_claude_code_can_be_read() -> None:
    agent = registry.find("claude", {})
    data = RECORDED.read_bytes()
    lines = list(transcripts.whole(printed(data, 999), agent.read))
    assert lines[:4] == [
        "- I will write the file.",
        "> Write: hello.txt",
        "  +hello from the fake model",
        "? It wants to use Write: /home/shed/hello.txt",
    ]
    assert lines[-2:] == ["- Done: hello.txt is committed.", "= done, as it said"]
    parts = every_part(
        lambda since: transcripts.readable(printed(data, 999), agent.read, since, len(data), alive=False)
    )
    assert "".join(parts).splitlines() == lines


# Kept


def test_a_transcript_is_kept_once_and_read_from_anywhere(tmp_path: Path) -> None:
    assert transcripts.kept(tmp_path, 0) is None
    keep_transcript(tmp_path, ["one", "zwölf", "three"])
    keep_transcript(tmp_path, ["another"])
    (path,) = tmp_path.iterdir()
    assert path.name == transcripts.TRANSCRIPT_FILE and path.stat().st_mode & 0o777 == 0o600
    assert gzip.decompress(path.read_bytes()).decode() == "one\nzwölf\nthree\n"
    assert transcripts.kept(tmp_path, 0) == ("one\nzwölf\nthree\n", 17)
    assert transcripts.kept(tmp_path, 4) == ("zwölf\nthree\n", 17)
    assert transcripts.kept(tmp_path, 17) == ("", 17)
    assert transcripts.kept(tmp_path, -8) == ("three\n", 17)
    path.write_bytes(path.read_bytes()[:-9])
    with pytest.raises(Unavailable, match="cannot be read"):
        transcripts.kept(tmp_path, 0)


def test_what_was_cut_off_while_it_was_kept_is_kept_anew(tmp_path: Path) -> None:
    def cut_off() -> Any:
        yield "one"
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        keep_transcript(tmp_path, cut_off())
    assert transcripts.kept(tmp_path, 0) is None
    keep_transcript(tmp_path, ["one", "two"])
    assert transcripts.kept(tmp_path, 0) == ("one\ntwo\n", 8)


def clear_outputs(runs: Path, *, keep_days: float, keep_megabytes: float, now: float) -> int:
    """Remove the outputs that have had their time, and return how many."""
    past = old_outputs(runs, Log(keep_days, keep_megabytes), now)
    return sum(each.path is not None and trash.remove(each.path) for each in past)


def test_old_output_goes_and_its_transcript_stays(tmp_path: Path) -> None:
    for number in range(4):
        folder = tmp_path / f"run-{number}"
        folder.mkdir()
        (folder / "output").write_bytes(b"x" * 1024 * 1024)
        os.utime(folder / "output", (1000.0 + number, 1000.0 + number))
        if number != 1:
            keep_transcript(folder, ["x"])

    def left() -> list[int]:
        return [number for number in range(4) if (tmp_path / f"run-{number}" / "output").exists()]

    def clear(**more: float) -> int:
        wanted = {"keep_days": 1.0, "keep_megabytes": 512.0, "now": 1010.0} | more
        return clear_outputs(tmp_path, **wanted)

    assert clear() == 0 and left() == [0, 1, 2, 3]
    assert clear(keep_megabytes=2) == 1 and left() == [1, 2, 3], "the oldest, but never one without a transcript"
    assert clear(now=1002.5 + 86400) == 1 and left() == [1, 3]
    assert all((tmp_path / f"run-{number}" / transcripts.TRANSCRIPT_FILE).exists() for number in (0, 2, 3))
    assert clear_outputs(tmp_path / "nowhere", keep_days=1, keep_megabytes=1, now=0) == 0


# The verb


def ended(world: World, agent: str, *argv: str) -> Run:
    """Let a run of an agent end that printed what a program prints."""
    world.add()
    if not world.ask("session.list"):
        world.ask("session.new", name="ada", agent=agent)
    task = world.ask("task.list", status="todo")[0]["id"]
    fence = world.claim(task, "ada")

    def begin(call: Any) -> Run:
        event = runs.Begun(session="ada", task=task, fence=fence, agent=agent)
        run = nouns.first(runs.Run, f"run-{call.tx.next_seq}", call.tx.next_seq, event, call.tx.now)
        call.tx.insert(run)
        call.tx.append("ada", run.id, event, run)
        return run

    run = world.do(begin)
    world.runner.start(run.id, Launch(argv=argv, cwd="/", env={"PATH": os.environ["PATH"]}))
    wait_until(lambda: not world.runner.look(run.id).alive, "the end of the program")
    world.end(run, Again("not yet"))
    return run


def test_the_logs_of_an_agent_that_speaks_json_are_a_transcript_unless_they_are_wanted_raw(world: World) -> None:
    run = ended(world, "claude", "/bin/cat", str(RECORDED))
    told = world.ask("session.logs", name="ada")
    assert told["transcript"] and told["text"].startswith("- I will write the file.\n> Write: hello.txt\n")
    assert told["next"] == RECORDED.stat().st_size
    assert world.ask("session.logs", name="ada", since=told["next"])["text"] == ""
    end = world.ask("session.logs", name="ada", run=run.id, since=-20)
    assert end["text"].startswith("= ") and end["next"] == told["next"], "the last line is whole"
    raw = world.ask("session.logs", name="ada", raw=True)
    assert not raw["transcript"]
    assert json.loads(raw["text"].splitlines()[0])["type"]


def test_the_logs_of_other_agents_are_what_they_printed(world: World) -> None:
    run = ended(world, "scripted", "/bin/echo", f"words and {SECRET}")
    told = world.ask("session.logs", name="ada")
    assert (told["text"], told["transcript"]) == ("words and [secret removed]\n", False)
    world.do(lambda call: call.tx.db.run("UPDATE runs SET agent = 'gone' WHERE id = ?", (run.id,)))
    assert world.ask("session.logs", name="ada")["text"] == told["text"]
    world.do(lambda call: call.tx.db.run("UPDATE runs SET agent = 'scripted' WHERE id = ?", (run.id,)))


def test_an_older_run_of_a_removed_session_can_be_read(world: World) -> None:
    first = ended(world, "scripted", "/bin/echo", "the first")
    ended(world, "scripted", "/bin/echo", "the second")
    world.ask("session.remove", name="ada", force=True)
    assert world.ask("session.logs", name="ada")["text"] == "the second\n"
    assert world.ask("session.logs", name="ada", run=first.id)["text"] == "the first\n"


def test_the_kept_transcript_is_read_when_the_output_is_gone(world: World, tmp_path: Path) -> None:
    run = ended(world, "claude", "/bin/cat", str(RECORDED))
    told = world.ask("session.logs", name="ada")["text"]
    agent = registry.find("claude", {})
    folder = tmp_path / "runs" / run.id
    keep_transcript(folder, transcript_of(world.runner, folder, run, agent))
    world.app.context.runs = tmp_path / "runs"
    assert clear_outputs(tmp_path / "runs", keep_days=0, keep_megabytes=0, now=2e9) == 1
    kept = world.ask("session.logs", name="ada", run=run.id)
    assert (kept["text"].splitlines()[:-1], kept["alive"]) == (told.splitlines()[:-1], False)
    assert world.ask("session.logs", name="ada", since=kept["next"])["text"] == ""
    with pytest.raises(Refused, match="has had its time"):
        world.ask("session.logs", name="ada", raw=True)
