"""What real programs printed, as people read it: their edits as lines, what tools printed, and no JSON."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from covey.agents import registry
from covey.agents.agent import Agent
from covey.agents.codex.terminal import CodexTerminal
from covey.app.history.run_streams import WithEdits
from covey.core.fleet.signals import Calls, Failed, Limited
from covey.core.history.transcripts import Transcript
from tests.agents.recordings import FOLDER, recorded

JOURNAL = (FOLDER / "codex" / "journals" / "edits.jsonl").read_text().splitlines()
REAL = ("claude", "codex", "gemini", "opencode", "aider")
SUMMED = ["  -    return 0", "  +    return sum(items)"]


def reader(agent: Agent) -> WithEdits:
    """Return what understands an agent whose ledger is the recorded journal."""
    return WithEdits(agent.read, lambda: [edit for line in JOURNAL if (edit := agent.edited(line)) is not None])


def told(agent: Agent, name: str) -> list[str]:
    """Return a recording as people read it."""
    transcript, read = Transcript(), reader(agent)
    return [shown for line in recorded(agent.name, name) for shown in transcript.take(read(line))]


@pytest.mark.parametrize(
    ("name", "edits", "printed"),
    [
        (
            "codex",
            ["> edit: /home/ada/shop/cart.py", *SUMMED, "> edit: /home/ada/shop/cart.py, /home/ada/shop/roof.py"],
            ["  x = 2", "  y = 3", "- Done."],
        ),
        ("gemini", ["> edit: cart.py", *SUMMED, "> edit: roof.py", '  +RED = "red"'], ["  cart.py", "  roof.py"]),
        ("opencode", ["> edit: /home/ada/shop/cart.py", *SUMMED, "> edit: roof.py"], ["  cart.py", "  roof.py"]),
    ],
)
def test_edits_and_what_tools_printed_stand_below_their_use(name: str, edits: list[str], printed: list[str]) -> None:
    shown = told(registry.find(name, {}), "edits")
    for part in (edits, printed):
        assert any(shown[at : at + len(part)] == part for at in range(len(shown))), shown


def test_codex_in_a_terminal_shows_its_patches_and_not_the_heads_of_outputs() -> None:
    transcript = Transcript()
    shown = [each for line in JOURNAL for each in transcript.take(CodexTerminal().read(line))]
    assert shown[:6] == ["> edit: roof.py", '  +RED = "red"', "  +", "  +", "> edit: cart.py", SUMMED[0]]
    assert "  M basket.py" in shown and not any("Wall time" in each for each in shown)


@pytest.mark.parametrize("name", REAL)
def test_nothing_that_people_read_of_a_real_run_is_json(name: str) -> None:
    agent = registry.find(name, {})
    files = sorted(path for path in (FOLDER / name).iterdir() if path.is_file())
    for path in files:
        assert not [line for line in told(agent, path.stem) if '{"' in line or '\\"' in line], path
        complaints = [each for line in path.read_text().splitlines() for each in agent.read(line)]
        words = [each.what for each in complaints if isinstance(each, Failed | Limited)]
        assert not [each for each in words if "{" in each], path


def test_a_provider_s_answer_within_another_is_told_in_words() -> None:
    inner = json.dumps({"error": {"code": 400, "message": "Too long."}})
    line = json.dumps({"type": "result", "status": "error", "error": {"message": f"[API Error: {inner}]"}})
    assert [each.what for each in registry.find("gemini", {}).read(line) if isinstance(each, Failed)] == [
        "API Error: Too long."
    ]
    nested = json.dumps({"error": {"message": inner}})
    line = json.dumps({"type": "turn.failed", "error": {"message": f"unexpected status 400: {nested}"}})
    (failed,) = registry.find("codex", {}).read(line)
    assert isinstance(failed, Failed) and failed.what == "unexpected status 400: Too long."


def test_edits_are_found_by_their_number_from_anywhere_on() -> None:
    """Whoever reads on from the middle counts what was named before."""
    agent = registry.find("codex", {})
    data = "".join(f"{line}\n" for line in recorded("codex", "edits")).encode()

    def output(since: int) -> tuple[bytes, int]:
        return data[since : since + 100], min(since + 100, len(data))

    start = data.index(b'{"type":"item.started","item":{"id":"item_2"')
    read = reader(agent).beginning_at(output, start)
    found = [each for line in data[start:].decode().splitlines() for each in read(line) if isinstance(each, Calls)]
    assert found[0].edit.splitlines()[1:3] == ["-x = 1", "+x = 2"]
    assert Path(found[0].about.partition(",")[0]).name == "cart.py"
