"""The bench runs, tells what it found, and fails only for what is wrong."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path

import pytest

from bench.__main__ import BENCHMARKS, LONG, main
from bench.figures import Report, number, percentile, table
from bench.queue import KINDS


def test_a_percentile_is_a_value_that_was_measured() -> None:
    values = [float(value) for value in range(1, 101)]
    assert percentile(values, 50) == 50
    assert percentile(values, 99) == 99
    assert percentile([7.0], 99) == 7


def test_a_number_is_shown_with_the_digits_that_mean_something() -> None:
    assert [number(value, "ms") for value in (0.1234, 12.34, 1234.5, 5.0)] == ["0.12 ms", "12.3 ms", "1,234 ms", "5 ms"]


def test_a_missed_target_is_shown_and_is_no_error() -> None:
    report = Report("x", "Something")
    report.add("slow", 10, "ms", at_most=5, peer="7 ms")
    assert "NO" in table([report])
    assert not report.wrong


def test_a_figure_without_a_target_says_so() -> None:
    report = Report("x", "Something")
    report.add("some", 10, "ms")
    assert table([report]).splitlines()[-1].split() == ["some", "10", "ms", "none"]


def test_a_double_claim_is_an_error() -> None:
    report = Report("x", "Something")
    report.must_be_zero("claimed twice", 1)
    assert report.wrong
    assert "WRONG" in table([report])


def test_claims_are_measured_and_written_down(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bench.claims.TASKS", (200, 200))
    path = tmp_path / "latest.json"
    assert main(["claims", "--quick", "--out", str(path)]) == 0
    told = json.loads(path.read_text())
    (report,) = told["reports"]
    figures = {figure["label"]: figure for figure in report["figures"]}
    assert figures["claims"]["value"] > 0
    assert figures["claimed twice"]["met"] is True
    assert "140/s" in capsys.readouterr().out
    assert report["name"] in BENCHMARKS


@pytest.mark.parametrize("name", ["claim", "fleet"])
def test_agents_at_work_are_measured(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for place in ("bench.fanout.SESSIONS", "bench.fleet.SESSIONS"):
        monkeypatch.setattr(place, 2)
    monkeypatch.setattr("bench.fleet.SETTLED", 0.0)
    monkeypatch.setattr("bench.fleet.SECONDS", (0.5, 0.5))
    path = tmp_path / "latest.json"
    assert main([name, "--quick", "--out", str(path)]) == 0
    (report,) = json.loads(path.read_text())["reports"]
    assert report["figures"]
    assert all(figure["value"] >= 0 for figure in report["figures"])


def test_a_real_queue_is_measured_beside_one_at_a_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bench.queue.SIDE", ((4, {2}, 0.01),))
    path = tmp_path / "latest.json"
    assert main(["side", "--quick", "--out", str(path)]) == 0
    (report,) = json.loads(path.read_text())["reports"]
    figures = {figure["label"]: figure["value"] for figure in report["figures"]}
    assert figures["covey against one at a time, k=2"] > 0
    assert figures["queues that ended with another tree on main"] == 0


def test_the_simulated_queue_is_measured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bench.queue.KINDS", KINDS[:1])
    path = tmp_path / "latest.json"
    assert main(["queue", "--quick", "--out", str(path)]) == 0
    (report,) = json.loads(path.read_text())["reports"]
    assert all(figure["value"] > 1 for figure in report["figures"])


def test_what_takes_minutes_is_measured_only_when_it_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    began: list[str] = []

    def note(name: str, *, quick: bool) -> Report:
        began.append(name)
        return Report(name, name)

    for name in BENCHMARKS:
        monkeypatch.setitem(BENCHMARKS, name, partial(note, name))
    assert main(["--out", str(tmp_path / "latest.json")]) == 0
    assert began == [name for name in BENCHMARKS if name not in LONG]
    began.clear()
    assert main([*LONG, "--out", str(tmp_path / "latest.json")]) == 0
    assert began == list(LONG)


@pytest.mark.soak
def test_panes_are_measured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bench.panes.PANES", 2)
    path = tmp_path / "latest.json"
    assert main(["panes", "--quick", "--out", str(path)]) == 0
    (report,) = json.loads(path.read_text())["reports"]
    assert any("at rest" in figure["label"] for figure in report["figures"])
