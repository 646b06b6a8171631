"""The search for a gate, when something keeps it from being finished."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from covey.cli.frame.client import Client
from covey.cli.merging import gate_try
from covey.cli.merging.gate_search import search
from covey.cli.project.init import Proposal
from covey.errors import Unavailable


@pytest.mark.parametrize("quiet", [False, True])
def test_what_keeps_a_later_gate_from_being_tried_is_told(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path, quiet: bool
) -> None:
    def try_gate(_: Client, check: str, *, quiet: bool) -> dict[str, Any]:
        if check != "make test":
            raise Unavailable("The disk is full.", hint="Make room.")
        return {"id": "gate-1", "verdict": "broken", "error": "make: pytest: not found"}

    monkeypatch.setattr(gate_try, "try_gate", try_gate)
    found = search(Client(str(tmp_path)), ["make test", "pytest -q", "tox"], "main", quiet=quiet)
    assert capsys.readouterr().err == '"pytest -q" could not be tried: The disk is full. Make room.\n'
    assert [each.check for each in found.tried] == ["make test"]
    assert Proposal("make test", found).untried == "The disk is full. Make room."
