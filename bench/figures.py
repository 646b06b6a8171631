"""A figure: one number that was measured in this run, beside what it should be and what the best peer has."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Figure:
    """One measured number; `target` is reached from above when `at_least`, else from below."""

    label: str
    value: float
    unit: str
    target: float | None = None
    at_least: bool = False
    peer: str = ""
    note: str = ""

    @property
    def met(self) -> bool | None:
        """Say whether the target is reached, None if there is none."""
        if self.target is None:
            return None
        return self.value >= self.target if self.at_least else self.value <= self.target


@dataclass
class Report:
    """The figures of one benchmark, and what went wrong in it besides the stopwatch."""

    name: str
    title: str
    figures: list[Figure] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)
    skipped: str = ""
    seconds: float = 0.0

    def add(
        self,
        label: str,
        value: float,
        unit: str,
        *,
        at_least: float | None = None,
        at_most: float | None = None,
        peer: str = "",
        note: str = "",
    ) -> None:
        """Enter one figure."""
        target = at_most if at_least is None else at_least
        self.figures.append(Figure(label, value, unit, target, at_least is not None, peer, note))

    def add_times(
        self,
        label: str,
        times: Sequence[float],
        *,
        p50: float | None = None,
        p99: float | None = None,
        peer: str = "",
    ) -> None:
        """Enter median and 99th percentile of some times in seconds, as milliseconds."""
        self.add(f"{label} p50", 1000 * percentile(times, 50), "ms", at_most=p50)
        self.add(f"{label} p99", 1000 * percentile(times, 99), "ms", at_most=p99, peer=peer)

    def must_be_zero(self, label: str, number: int) -> None:
        """Enter a number of which anything but zero is an error, whatever the stopwatch says."""
        self.add(label, number, "", at_most=0)
        if number:
            self.wrong.append(f"{label}: {number}, must be 0")


def percentile(values: Sequence[float], percent: float) -> float:
    """Return the smallest value that at least this part of the values does not exceed."""
    ordered = sorted(values)
    return ordered[max(0, math.ceil(len(ordered) * percent / 100) - 1)] if ordered else math.nan


def median(values: Sequence[float]) -> float:
    """Return the middle value."""
    return percentile(values, 50)


def number(value: float, unit: str) -> str:
    """Return a number as a person reads it: three digits that mean something, thousands apart."""
    if math.isnan(value):
        return "-"
    digits = 0 if value == round(value) or abs(value) >= 100 else 1 if abs(value) >= 10 else 2
    return f"{value:,.{digits}f}" + ("x" if unit == "x" else f" {unit}" if unit else "")


def table(reports: Sequence[Report]) -> str:
    """Return all figures as text in aligned columns."""
    head = ("", "measured", "target", "met", "best peer")
    lines: list[tuple[str, ...] | str] = [head]
    for report in reports:
        lines.append(f"\n{report.title}" + (f"  [skipped: {report.skipped}]" if report.skipped else ""))
        lines += [_line(figure) for figure in report.figures]
        lines += [f"  WRONG: {wrong}" for wrong in report.wrong]
    widths = [max(len(line[i]) for line in lines if not isinstance(line, str)) for i in range(len(head))]
    return "\n".join(line if isinstance(line, str) else _aligned(line, widths) for line in lines)


def _line(figure: Figure) -> tuple[str, ...]:
    target = "none"
    if figure.target is not None:
        target = f"{'>=' if figure.at_least else '<='} {number(figure.target, figure.unit)}"
    met = {None: "", True: "yes", False: "NO"}[figure.met]
    return f"  {figure.label}", number(figure.value, figure.unit), target, met, figure.peer or figure.note


def _aligned(line: Sequence[str], widths: Sequence[int]) -> str:
    name, measured, target, met, peer = line
    cells = (name.ljust(widths[0]), measured.rjust(widths[1]), target.rjust(widths[2]), met.ljust(widths[3]))
    return "  ".join((*cells, peer)).rstrip()


def write(path: Path, reports: Sequence[Report], about: dict[str, Any]) -> None:
    """Write everything as one JSON file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    told = [
        asdict(report) | {"figures": [asdict(figure) | {"met": figure.met} for figure in report.figures]}
        for report in reports
    ]
    path.write_text(json.dumps(about | {"reports": told}, indent=1) + "\n")
