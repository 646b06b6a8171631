"""Agents of your own: what stands in a command, and what is refused."""

from __future__ import annotations

import pytest

from covey.agents.custom import PLACEHOLDERS, Declared, check
from covey.core.fleet.signals import (
    Asks,
    Called,
    Calls,
    Conversation,
    Failed,
    Limited,
    Result,
    Said,
    Spent,
    Trouble,
    Usage,
    Waits,
    Works,
)
from covey.errors import Invalid
from tests.agents.works import PATIENCE, Place


def test_every_placeholder_is_replaced_wherever_it_stands(place: Place) -> None:
    work = place.work("the body")
    agent = Declared("mine", ("{task}", *(f"-{{{name}}}-{{{name}}}" for name in PLACEHOLDERS)))
    argv = agent.launch(work).argv
    assert argv[0] == "T-1"
    assert argv[1:] == tuple(f"-{getattr(work, name)}-{getattr(work, name)}" for name in PLACEHOLDERS)


def test_other_braces_stay_as_they_are_and_what_is_put_in_is_not_looked_at_again(place: Place) -> None:
    agent = Declared("mine", ("awk", "{print}", "{}", "{Task}", "${task}", "{{task}}", "{title}"))
    argv = agent.launch(place.work("", title="{task} and {prompt}")).argv
    assert argv == ("awk", "{print}", "{}", "{Task}", "${task}", "{T-1}", "{task} and {prompt}")


def test_a_prompt_too_long_for_a_word_is_to_be_read_from_its_file(place: Place) -> None:
    agent = Declared("mine", ("printf", "%s", "--prompt={prompt}"))
    work = place.work("é" * 100_000)
    launch = agent.launch(work)
    assert launch.argv[2] == f"--prompt=Read the file {work.prompt_file}: it says all that you have to do."
    assert agent.launch(place.work("x" * 90_000)).argv[2].endswith("x" * 90_000)


def test_two_prompts_in_one_word_do_not_exceed_it(place: Place) -> None:
    launch = Declared("mine", ("printf", "%s", "{prompt}{prompt}")).launch(place.work("x" * 90_000))
    with place.started(launch) as process:
        said, _ = process.communicate(timeout=PATIENCE)
    assert process.returncode == 0
    assert said.count("Read the file") == 2


@pytest.mark.parametrize(
    ("command", "script", "fixed"),
    [
        (("mine", "{prompt}"), False, False),
        (("mine", "--read={prompt_file}", "{title}"), False, False),
        (("bash", "{body_file}"), True, False),
        (("sh", "-c", "{title}"), True, False),
        (("sh", "-c", "make mend # {worktree} {task} {session} {run}"), True, True),
        (("sh", "-c", "echo ${prompt} ${title} {prompts} {prompt"), True, True),
        (("sh", "${prompt}", "{body_file}"), True, False),
    ],
)
def test_what_an_agent_is_given_of_its_task_is_what_is_filled_in(
    command: tuple[str, ...], script: bool, fixed: bool
) -> None:
    traits = Declared("mine", command).traits
    assert (traits.script, traits.fixed) == (script, fixed)
    assert traits.bodies == (script and not fixed and not any("{title}" in word for word in command))


def test_lines_are_said_and_signals_are_understood() -> None:
    agent = Declared("mine", ("true",))
    assert agent.read("  \x1b[1mBuilding\x1b[0m \n") == [Said("Building")]
    assert agent.read("10 %\r20 %\n") == [Said("20 %")]
    assert agent.read("\x1b[2K\n") == []
    assert agent.read('{"covey": "ask", "text": "Which?\\nThis?"}') == [Asks("Which?\nThis?")]
    assert agent.read('{"covey": "working"}') == [Works()]
    assert agent.read('{"covey": "result", "text": "All is well."}') == [Result("All is well.")]
    assert agent.read('{"covey": "failed", "text": "No."}') == [Failed("No.")]
    assert agent.read('{"covey": "conversation", "id": "c-1"}') == [Conversation("c-1")]


def test_what_it_costs_and_who_puts_it_off_is_understood() -> None:
    agent = Declared("mine", ("true",))
    usage = '"input": 2000, "output": 150, "cache_read": 7'
    assert agent.read(f'{{"covey": "spent", "call": "c", "model": "m", {usage}, "cost": 0.5}}') == [
        Spent("c", Usage(2000, 150, 7), "m", 0.5)
    ]
    assert agent.read('{"covey": "spent", "call": "c"}') == [Spent("c", Usage())]
    assert agent.read('{"covey": "spent", "call": "c", "input": -3, "output": true, "cost": NaN}') == [
        Spent("c", Usage())
    ]
    assert agent.read('{"covey": "failed", "text": "No", "trouble": "limit", "until": 99.5}') == [
        Failed("No", Trouble.LIMIT, 99.5)
    ]
    assert agent.read('{"covey": "failed", "text": "No", "trouble": "bad luck"}') == [Failed("No")]
    assert agent.read('{"covey": "failed", "text": "No", "trouble": ["limit"]}') == [Failed("No")]
    assert agent.read('{"covey": "limited", "text": "529", "trouble": "overload"}') == [
        Limited(Trouble.OVERLOAD, "529")
    ]
    assert agent.read('{"covey": "limited", "text": "429", "until": 7}') == [Limited(Trouble.LIMIT, "429", 7.0)]
    assert agent.read('{"covey": "waits"}') == [Waits()]
    assert agent.read('{"covey": "calls", "id": "1", "tool": "shell", "about": "make"}') == [
        Calls("1", "shell", "make")
    ]
    assert agent.read('{"covey": "called", "id": "1"}') == [Called("1")]


@pytest.mark.parametrize(
    "line",
    [
        '{"covey": "spent"}',
        '{"covey": "calls"}',
        '{"covey": "limited"}',
        '{"covey": "dance"}',
        '{"covey": "ask"}',
        '{"covey": "ask", "text": 3}',
        '{"covey": "result", "text": "x"',
        "[1]",
    ],
)
def test_what_is_no_signal_is_said(line: str) -> None:
    assert Declared("mine", ("true",)).read(line) == [Said(line)]


def test_a_huge_line_is_cut() -> None:
    (said,) = Declared("mine", ("true",)).read("x" * (1024 * 1024 + 1))
    assert isinstance(said, Said)
    assert said.text == "x" * 3999 + "…"


@pytest.mark.parametrize(
    ("command", "complaint"),
    [
        ([], "names no program"),
        ([""], "names no program"),
        ("bash", "list of texts"),
        (["bash", 3], "list of texts"),
        (None, "list of texts"),
        (["bash", "a\0b"], "NUL"),
    ],
)
def test_a_command_that_makes_no_sense_is_refused(command: object, complaint: str) -> None:
    with pytest.raises(Invalid, match=complaint):
        check("mine", command)


@pytest.mark.parametrize(
    ("typed", "meant"),
    [("promt", "prompt"), ("Body_file", "body_file"), ("prompt-file", "prompt_file"), ("taks", "task")],
)
def test_a_placeholder_mistyped_is_refused_with_the_nearest(typed: str, meant: str) -> None:
    with pytest.raises(Invalid) as refused:
        check("mine", ["bash", f"--file={{{typed}}}"])
    assert f"{{{typed}}}" in refused.value.message
    assert refused.value.hint == f"Did you mean {{{meant}}}?"


def test_a_command_that_makes_sense_is_taken() -> None:
    commands = [
        ["bash", "{body_file}"],
        ["awk", "{print}", "{prompt_file}"],
        ["sh", "-c", 'my-agent "$1" < "${title}"', "sh", "{prompt}"],
        ("sh", "-c", "cd {worktree} && make", "{title}"),
        ["jq", "{name}", "{}", "{1}"],
        ["sh", "-c", "echo {title}"],
    ]
    assert [check("mine", command) for command in commands] == [tuple(command) for command in commands]


@pytest.mark.parametrize("name", ["", "two words", "-x", "a/b"])
def test_the_name_of_an_agent_is_a_name(name: str) -> None:
    with pytest.raises(Invalid, match="name of an agent"):
        check(name, ["true"])
