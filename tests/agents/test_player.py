"""The scripted agent's language, played as a real process in a real repository."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from covey.agents.player import STEPS, TROUBLES
from covey.agents.scripted import PLAYER, agent
from covey.core.fleet.signals import Called, Calls, Failed, Limited, Said, Spent, Trouble, Usage
from tests.agents.works import PATIENCE, Place
from tests.worlds.serving import wait_until


def _play(place: Place, script: str, answers: str = "", **env: str) -> subprocess.CompletedProcess[str]:
    return place.played(agent, script, answers, **env)


def _ok(place: Place, script: str, answers: str = "", **env: str) -> str:
    done = _play(place, script, answers, **env)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def test_files_are_written_changed_and_deleted(place: Place) -> None:
    script = """\
# A comment, and an empty line

write garden/beds.txt
    roses
      thorns

    tulips

append garden/beds.txt
    mint
replace shed.txt
    roof
with
    green roof
    chimney
write empty.txt
commit Plant a garden
delete empty.txt
"""
    assert _ok(place, script) == ""
    assert place.git("show", "HEAD:garden/beds.txt") == "roses\n  thorns\n\ntulips\nmint"
    assert (place.worktree / "shed.txt").read_text() == "walls\ngreen roof\nchimney\ndoor\n"
    assert place.git("log", "-1", "--format=%s") == "Plant a garden"
    assert place.git("status", "--porcelain") == "D empty.txt"


def test_a_script_may_have_the_line_endings_of_another_system(place: Place) -> None:
    _ok(place, "write a.txt\r\n    one\r\n\r\n    two\r\nsay done\r\n")
    assert (place.worktree / "a.txt").read_bytes() == b"one\n\ntwo\n"


def test_a_replacement_touches_nothing_else(place: Place) -> None:
    path = place.worktree / "shed.txt"
    path.write_bytes(b"walls\r\nroof\ndoor")
    _ok(place, "replace shed.txt\n    door\nwith\n    gate\n")
    assert path.read_bytes() == b"walls\r\nroof\ngate"
    _ok(place, "replace shed.txt\n    roof\nwith\n")
    assert path.read_bytes() == b"walls\r\ngate"


def test_a_script_that_is_played_again_finds_its_work_done(place: Place) -> None:
    script = "replace shed.txt\n    roof\nwith\n    green roof\ncommit Paint\n"
    _ok(place, script)
    assert _ok(place, script) == "shed.txt is already up to date\nnothing to commit\n"
    assert place.git("rev-list", "--count", "HEAD") == "2"


@pytest.mark.parametrize(("old", "times"), [("cellar", 0), ("twice", 2)])
def test_lines_that_do_not_stand_there_once_are_not_replaced(place: Place, old: str, times: int) -> None:
    (place.worktree / "shed.txt").write_text("twice\nonce\ntwice\nnot twice\n")
    done = _play(place, f"say first\nreplace shed.txt\n    {old}\nwith\n    new\n")
    assert (done.returncode, done.stdout) == (1, "first\n")
    assert done.stderr == f"script: line 2: replace: the old lines stand in shed.txt {times} times, not once\n"


def test_a_command_runs_in_the_shell_and_its_failure_is_ours(place: Place) -> None:
    script = """\
run echo "$COVEY_TASK, try $COVEY_TRY" | tr a-z A-Z
run
    for word in a b
    do echo {word} $word
    done
run cat
run exit 3
say never
"""
    done = _play(place, script)
    assert done.returncode == 1
    assert done.stdout == "T-1, TRY 1\n{word} a\n{word} b\n"
    assert done.stderr == "script: line 7: run: `exit 3` ended with 3\n"


def test_an_answer_is_known_to_later_steps(place: Place) -> None:
    script = 'write before.txt\n    {answer}\nask Which "colour"?\nwrite {answer}.txt\n    {answer} {task}\n'
    script += 'say {task} {try} {answer}\nrun printf %s\\\\n "$ANSWER"\nask More?\nsay {answer}\n'
    said = _ok(place, script, "é $(blue) {task}\nno\n", COVEY_TRY="4")
    assert said.splitlines() == [
        '{"covey": "ask", "text": "Which \\"colour\\"?"}',
        '{"covey": "working"}',
        "T-1 4 é $(blue) {task}",
        "é $(blue) {task}",
        '{"covey": "ask", "text": "More?"}',
        '{"covey": "working"}',
        "no",
    ]
    assert (place.worktree / "before.txt").read_text() == "{answer}\n"
    assert (place.worktree / "é $(blue) {task}.txt").read_text() == "é $(blue) {task} {task}\n"


def test_a_question_that_nobody_can_answer_fails(place: Place) -> None:
    done = _play(place, "ask Anyone?\n")
    assert (done.returncode, done.stderr) == (1, "script: line 1: ask: nobody answers, since the input has ended\n")


@pytest.mark.parametrize(("number", "said"), [("1", "a\nd\n"), ("2", "b\nc\nd\n"), ("3", "c\nd\n"), ("x", "a\nd\n")])
def test_a_step_may_belong_to_some_tries_only(place: Place, number: str, said: str) -> None:
    script = "try 1: say a\ntry 2: say b\ntry 2+: say c\ntry 1: write one.txt\n    one\nsay d\n"
    assert _ok(place, script, COVEY_TRY=number) == said
    assert (place.worktree / "one.txt").exists() == (number in "1x")


def test_it_waits_for_a_file_without_end_and_for_seconds(place: Place) -> None:
    launch = agent.launch(place.work("wait 0.01\nwrite waits\nwait for go/on\nsay on\n"))
    with place.started(launch) as process:
        wait_until((place.worktree / "waits").exists, "it waits")
        assert process.poll() is None
        (place.worktree / "go").mkdir()
        (place.worktree / "go" / "on").touch()
        said, complaint = process.communicate(timeout=PATIENCE)
    assert (process.returncode, said, complaint) == (0, "on\n", "")


def test_it_hangs_without_work_and_may_ignore_being_asked_to_end(place: Place) -> None:
    launch = agent.launch(place.work("ignore TERM\nwrite hangs\nhang\n"))
    with place.started(launch) as process:
        try:
            wait_until((place.worktree / "hangs").exists, "it hangs")
            process.terminate()
            pending, ignored = _signals(process.pid)
            assert ignored & 1 << (signal.SIGTERM - 1)
            wait_until(lambda: _state(process.pid) == "S", "it sleeps")
            assert process.poll() is None and not pending
        finally:
            process.kill()
    assert process.returncode == -signal.SIGKILL


def _signals(pid: int) -> tuple[int, int]:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    masks = dict(line.split(":\t", 1) for line in lines if line.startswith("Sig"))
    return int(masks["SigPnd"], 16), int(masks["SigIgn"], 16)


def _state(pid: int) -> str:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2].split()[0]


def test_it_spins_on_the_processor(place: Place) -> None:
    before = os.times()
    _ok(place, "spin 0.3\n")
    after = os.times()
    assert after.children_user + after.children_system - before.children_user - before.children_system >= 0.25


@pytest.mark.parametrize(
    ("step", "code"),
    [("crash", 1), ("crash 7", 7), ("crash 0", 0), ("crash KILL", -9), ("crash SIGSEGV", -11), ("crash int", -2)],
)
def test_it_crashes_as_told(place: Place, step: str, code: int) -> None:
    done = _play(place, f"say before\n{step}\nsay after\n")
    assert (done.returncode, done.stdout, done.stderr) == (code, "before\n", "")


def test_it_leaves_dirt(place: Place) -> None:
    _ok(place, "dirt scraps/paint.txt\n")
    assert place.git("status", "--porcelain", "--untracked-files=all") == "M shed.txt\n?? scraps/paint.txt"


def test_it_nests_a_repository(place: Place) -> None:
    _ok(place, "nest vendor/tool\n", GIT_DIR=str(place.worktree / ".git"))
    inner = Place(place.worktree / "vendor" / "tool", place.env)
    assert inner.git("rev-parse", "--show-toplevel") == str(inner.worktree)
    assert inner.git("log", "--format=%s") == "Begin within"
    assert inner.git("status", "--porcelain") == "?? dirty.txt"
    assert place.git("rev-list", "--count", "HEAD") == "1"


def test_it_leaves_a_process_behind_that_has_its_own_session(place: Place) -> None:
    launch = agent.launch(place.work("fork 300\n"))
    with place.started(launch) as process:
        assert process.stdout is not None
        said = process.stdout.readline()
        assert process.wait(PATIENCE) == 0
        child = int(said.split()[2])
        try:
            wait_until(lambda: os.getsid(child) == child, "it has its own session")
        finally:
            os.kill(child, signal.SIGKILL)


@pytest.mark.parametrize("size", [0, 1, 79, 63_200, 63_201, 1_000_000])
def test_it_floods_with_as_many_bytes_as_told(place: Place, size: int) -> None:
    said = _ok(place, f"flood {size}\n")
    assert len(said) == size
    assert not said or said.endswith("\n")


def test_it_says_what_it_spends_and_which_tools_it_uses(place: Place) -> None:
    said = _ok(place, "spend sonnet 2000 150 0.01\nspend opus 1 2\ncall shell make test\n")
    assert [signal for line in said.splitlines() for signal in agent.read(line)] == [
        Spent("call-1", Usage(2000, 150), "sonnet", 0.01),
        Spent("call-2", Usage(1, 2), "opus"),
        Calls("call-3", "shell", "make test"),
        Called("call-3"),
    ]


def test_it_is_put_off_and_goes_on_or_meets_a_trouble_and_ends(place: Place) -> None:
    done = _play(place, "limited overload: 529\nsay on\ntrouble limit 60: 429, come later\nsay never\n")
    assert done.returncode == 1
    first, on, last = [signal for line in done.stdout.splitlines() for signal in agent.read(line)]
    assert (first, on) == (Limited(Trouble.OVERLOAD, "529"), Said("on"))
    assert isinstance(last, Failed) and (last.what, last.trouble) == ("429, come later", Trouble.LIMIT)
    assert last.until is not None


def test_every_trouble_can_be_played() -> None:
    assert tuple(Trouble) == TROUBLES


def test_it_listens_and_says_what_it_heard(place: Place) -> None:
    assert _ok(place, "listen\nwrite a.txt\n    {answer}\n", "Go on\n") == "heard: Go on\n"
    assert (place.worktree / "a.txt").read_text() == "Go on\n"


def test_it_says_what_came_of_it(place: Place) -> None:
    assert _ok(place, 'result All "{task}" is well.\n') == '{"covey": "result", "text": "All \\"T-1\\" is well."}\n'
    done = _play(place, "fail No paint.\nsay never\n")
    assert (done.returncode, done.stdout) == (1, '{"covey": "failed", "text": "No paint."}\n')


@pytest.mark.parametrize("body", ["", "\n \n"])
def test_a_task_that_is_only_a_title_is_noted_and_committed(place: Place, body: str) -> None:
    _ok(place, body)
    assert place.git("show", "HEAD:notes/T-1.md").startswith("# Paint the shed\n")
    assert place.git("log", "-1", "--format=%s") == "Paint the shed"
    assert place.git("status", "--porcelain") == ""


@pytest.mark.parametrize(
    ("script", "complaint"),
    [
        ("say\n", "say says nothing of what"),
        ("shout hello\n", "there is no step 'shout'; there are say, write"),
        ("comit Paint\n", "there is no step 'comit'; did you mean commit?"),
        ("hang for ever\n", "hang takes nothing more"),
        ("say hello\n    world\n", "say takes no indented lines"),
        ("  say hello\n", "a step begins at the left edge"),
        ("replace a.txt\n    old\nsay x\n", "replace takes the old lines indented, then `with`"),
        ("replace a.txt\n    old\n", "replace takes the old lines indented, then `with`"),
        ("replace a.txt\nwith\n    new\n", "replace says no old lines"),
        ("wait long\n", "'long' is not a number of seconds"),
        ("wait for\n", "wait for says nothing of what"),
        ("wait -1\n", "'-1' is not a number of seconds"),
        ("spin nan\n", "'nan' is not a number of seconds"),
        ("flood 1k\n", "'1k' is not a number of bytes"),
        ("crash 256\n", "256 is not an exit code"),
        ("crash BANG\n", "'BANG' is not a signal"),
        ("spend sonnet\n", "spend takes a model, tokens in, tokens out"),
        ("spend sonnet 1 -1\n", "spend takes a model, tokens in, tokens out"),
        ("spend sonnet 1 many\n", "spend takes a model, tokens in, tokens out"),
        ("trouble bad: luck\n", "a trouble (limit, overload"),
        ("trouble limit\n", "a trouble (limit, overload"),
        ("trouble :\n", "a trouble (limit, overload"),
        ("limited limit soon: 429\n", "'soon' is not a number of seconds"),
        ("listen up\n", "listen takes nothing more"),
        ("ignore everything\n", "'everything' is not a signal"),
        ("run\n", "run says nothing of what"),
        ("try: say x\n", "there is no step 'try:'"),
        ("try 0: say x\n", "try takes a number, a colon and a step"),
        ("try 1 say x\n", "try takes a number, a colon and a step"),
        ("try 1:\n", "try takes a number, a colon and a step"),
    ],
)
def test_a_script_that_is_wrong_is_refused_before_anything_is_done(place: Place, script: str, complaint: str) -> None:
    done = _play(place, f"write done.txt\n\n{script}")
    assert done.returncode == 2
    assert done.stderr.startswith(f"script: line 3: {complaint}")
    assert done.stderr.count("\n") == 1
    assert done.stdout == ""
    assert not (place.worktree / "done.txt").exists()


@pytest.mark.parametrize(
    ("script", "complaint"),
    [
        ("delete missing.txt\n", "No such file"),
        ("write shed.txt/x\n", "File exists"),
        ("replace missing.txt\n    a\nwith\n    b\n", "No such file"),
        ("write a\n    x\nrun chmod 0 .git/index && rm -rf .git\ncommit Nothing\n", "ended with 128"),
    ],
)
def test_a_step_that_cannot_be_done_is_told_in_a_sentence(place: Place, script: str, complaint: str) -> None:
    done = _play(place, script)
    assert done.returncode == 1
    assert complaint in done.stderr
    assert "Traceback" not in done.stderr


def test_a_body_that_is_missing_or_no_text_is_refused(place: Place) -> None:
    launch = agent.launch(place.work(""))
    body = place.worktree.parent / "body"
    for content in (b"say \xff\n", None):
        body.unlink() if content is None else body.write_bytes(content)
        with place.started(launch) as process:
            _, complaint = process.communicate(timeout=PATIENCE)
        assert process.returncode == 2
        assert "Traceback" not in complaint


def test_it_loads_nothing_that_it_does_not_need(place: Place) -> None:
    body = place.work("say hello\nwrite x\n    y\ncommit Write\n").body_file
    code = f"""
import os, sys, time
before, sys.argv = set(sys.modules), ["player", {body!r}, "T-1", "x"]
try:
    exec(compile(open({str(PLAYER)!r}).read(), "player", "exec"), {{"__name__": "__main__"}})
except SystemExit:
    print(sorted(set(sys.modules) - before))
"""
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", code],
        cwd=place.worktree,
        env=place.env,
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == "hello\n['__future__']\n"


def test_every_step_is_explained() -> None:
    page = (Path(__file__).parents[2] / "docs" / "howto" / "agents.md").read_text()
    assert [step for step in STEPS if f"`{step}" not in page] == []
