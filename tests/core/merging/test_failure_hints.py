"""What a failed check may have lacked."""

from __future__ import annotations

import pytest

from covey.core.merging import failures
from covey.core.merging.failures import missed_paths, missed_variables, wants_network


@pytest.mark.parametrize(
    "line",
    [
        "curl: (6) Could not resolve host: example.org",
        "pip: [Errno -3] Temporary failure in name resolution",
        "npm ERR! code EAI_AGAIN",
        "Error: connect ENETUNREACH 93.184.216.34:443",
        "dial tcp: lookup proxy.golang.org: connection refused",
        "psycopg2.OperationalError: could not connect to server: Connection refused",
        "java.net.UnknownHostException: repo.maven.apache.org",
        "ConnectionRefusedError: [Errno 111] Connection refused",
        "OSError: [Errno 101] Network is unreachable",
    ],
)
def test_what_misses_the_network_says_so(line: str) -> None:
    assert wants_network(f"collected 3 items\n{line}\n")


def test_other_failures_do_not_want_the_network() -> None:
    assert not wants_network("FAILED tests/test_a.py::test_b - assert 1 == 2\nE  network of roads\n")


def test_paths_are_taken_from_lines_that_miss_something() -> None:
    text = "cat: /srv/data/big: No such file or directory\nread /etc/hosts\nsh: 1: /opt/x/run: not found\n~/a/b missing"
    assert missed_paths(text) == ("/srv/data/big", "/opt/x/run", "~/a/b")
    assert missed_paths("all is well in /srv/data") == ()


def test_only_variables_that_were_held_back_are_named() -> None:
    assert missed_variables("KeyError: 'DATABASE_URL' and HOME", ["DATABASE_URL", "OTHER"]) == ("DATABASE_URL",)


def test_the_hints_of_a_gate_are_found_again_in_its_summary_and_not_in_its_output() -> None:
    told = [
        failures.NO_NETWORK,
        failures.WROTE_OUTSIDE,
        failures.not_shown(["/a"]),
        failures.not_given(["B"]),
        failures.own_package("shop", "src"),
    ]
    summary = "\n".join(["The check failed.", *told, "The errors:", "boom", "The end of its output:", told[0]])
    assert failures.hints_in(summary) == told
    assert failures.hints_in(f"The check failed.\nThe end of its output:\n{told[0]}") == []


def test_modules_that_were_not_found_are_named_by_their_whole_name_only() -> None:
    text = "E  ModuleNotFoundError: No module named 'shop'\npython3: No module named pytest\nNo module named 'a.b'\n"
    text += f"No module named '{'x' * 300}'\n"
    assert failures.missed_modules(text) == ("shop", "pytest")
