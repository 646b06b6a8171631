"""The program of the scripted agent: plays the script in a task's body, one step a line; no model, no key.

Run as `python -I -S player.py BODY_FILE TASK TITLE`, without covey on the path. What few scripts
need is imported where they need it, and no annotation is evaluated, so that the first step begins within milliseconds.
It ends with 0 when the script is through, 1 when a step failed, and 2, with nothing done, when the script is wrong.
"""

from __future__ import annotations

import os
import sys
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

INDENT = "    "
EVERY_TRY = range(1, sys.maxsize)
NOTHING, WORDS, MAYBE = "no words", "words", "words or none"
TROUBLES = ("limit", "overload", "connection", "key", "credit", "context", "corrupt", "budget", "other")
FOREIGN_GIT = ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_PREFIX")


class Wrong(Exception):
    """The script says something that cannot be played."""


class Failed(Exception):
    """A step went wrong."""


class Step:
    """One step of a script: where it stands, what it does, and the indented lines that belong to it."""

    def __init__(
        self, line: int, verb: str, words: str, block: list[str], new: list[str], tries: range = EVERY_TRY
    ) -> None:
        self.line = line
        self.verb = verb
        self.words = words
        self.block = block
        self.new = new
        self.tries = tries


class Play:
    """What the steps of one script know and remember."""

    def __init__(self, task: str, title: str, number: int) -> None:
        self.task = task
        self.title = title
        self.number = number
        self.answer: str | None = None
        self.calls = 0

    def filled(self, words: str) -> str:
        """Return the words of a step with what is known in the place of its name."""
        for name, value in (("task", self.task), ("try", str(self.number)), ("answer", self.answer)):
            if value is not None:
                words = words.replace("{" + name + "}", value)
        return words

    def text(self, block: list[str]) -> str:
        """Return indented lines as the text of a file, with the answer in the place of its name."""
        text = "".join(line + "\n" for line in block)
        return text if self.answer is None else text.replace("{answer}", self.answer)


# The script


def parse(text: str) -> list[Step]:
    """Return the steps of a script, or say in which line it is wrong."""
    lines = [line.rstrip("\r") for line in text.split("\n")]
    steps: list[Step] = []
    at = 0
    while at < len(lines):
        line, number = lines[at].rstrip(), at + 1
        at += 1
        if line and not line.startswith("#"):
            try:
                step, at = _step(number, line, lines, at)
                steps.append(step)
            except Wrong as error:
                raise Wrong(f"line {number}: {error}") from None
    return steps


def _step(number: int, line: str, lines: list[str], at: int) -> tuple[Step, int]:
    """Read the step that begins in a line, and say where the next one may begin."""
    if line[0].isspace():
        raise Wrong("a step begins at the left edge; indented lines follow write, append, replace or run")
    tries, line = _tries(line)
    verb, _, words = line.partition(" ")
    block, at = _block(lines, at)
    new: list[str] = []
    if verb == "replace":
        if at >= len(lines) or lines[at].rstrip() != "with":
            raise Wrong("replace takes the old lines indented, then `with` on a line of its own, then the new ones")
        new, at = _block(lines, at + 1)
    step = Step(number, verb, words.strip(), block, new, tries)
    _check(step)
    return step, at


def _tries(line: str) -> tuple[range, str]:
    """Return in which tries a line is played, and the line without saying so."""
    if not line.startswith("try "):
        return EVERY_TRY, line
    number, colon, rest = line[4:].partition(":")
    first = number.strip().removesuffix("+")
    if not colon or not rest.strip() or not (first.isascii() and first.isdigit()) or int(first[:9]) < 1:
        raise Wrong(
            "try takes a number, a colon and a step: `try 1: say not yet`; `try 2+:` is every one from there on"
        )
    begin = int(first[:9])
    return range(begin, sys.maxsize if number.strip().endswith("+") else begin + 1), rest.strip()


def _block(lines: list[str], at: int) -> tuple[list[str], int]:
    """Return the indented lines from one on, without their indentation; an empty line counts if more follow."""
    end = at
    for here in range(at, len(lines)):
        if lines[here].startswith(INDENT):
            end = here + 1
        elif lines[here].strip():
            break
    return [line[len(INDENT) :] for line in lines[at:end]], end


def _check(step: Step) -> None:
    """Refuse a step that could not be played, before any is."""
    if step.verb not in STEPS:
        raise Wrong(_unknown(step.verb))
    _, takes, takes_block, check = STEPS[step.verb]
    if takes == WORDS and not step.words and not (step.verb == "run" and step.block):
        raise Wrong(f"{step.verb} says nothing of what")
    if takes == NOTHING and step.words:
        raise Wrong(f"{step.verb} takes nothing more")
    if step.block and not takes_block:
        raise Wrong(f"{step.verb} takes no indented lines")
    if step.verb == "replace" and not step.block:
        raise Wrong("replace says no old lines")
    if check and step.words:
        check(step.words)


def _unknown(verb: str) -> str:
    import difflib  # only a typo needs it

    near = difflib.get_close_matches(verb, STEPS, 1, 0.6)
    return f"there is no step {verb!r}; " + (f"did you mean {near[0]}?" if near else f"there are {', '.join(STEPS)}")


def _seconds(words: str) -> float:
    try:
        seconds = float(words)
    except ValueError:
        seconds = -1
    if not 0 <= seconds < 1e9:
        raise Wrong(f"{words!r} is not a number of seconds")
    return seconds


def _waited_for(words: str) -> str | float:
    """Return the file or the seconds that `wait` waits for."""
    if words == "for" or words.startswith("for "):
        if not words[4:].strip():
            raise Wrong("wait for says nothing of what")
        return words[4:].strip()
    return _seconds(words)


def _bytes(words: str) -> int:
    if not (words.isascii() and words.isdigit() and len(words) < 16):
        raise Wrong(f"{words!r} is not a number of bytes")
    return int(words)


def _signal(words: str) -> int:
    import signal

    number = getattr(signal, "SIG" + words.upper().removeprefix("SIG"), None)
    if not isinstance(number, signal.Signals):
        raise Wrong(f"{words!r} is not a signal; there are TERM, KILL, SEGV ...")
    return number


def _usage(words: str) -> dict[str, object]:
    """Return what `spend` says: a model, tokens in and out, and dollars if they are known."""
    model, *numbers = words.split()
    try:
        told = [float(number) for number in numbers]
    except ValueError:
        told = []
    if len(told) not in (2, 3) or not all(0 <= number < 1e15 for number in told):
        raise Wrong("spend takes a model, tokens in, tokens out and perhaps dollars: `spend sonnet 2000 150 0.01`")
    used: dict[str, object] = {"model": model, "input": int(told[0]), "output": int(told[1])}
    return used | ({"cost": told[2]} if len(told) == 3 else {})


def _refusal(words: str) -> dict[str, object]:
    """Return which trouble it is, for how many seconds if that is said, and what is told of it."""
    head, colon, text = words.partition(":")
    trouble, *seconds = head.split() or [""]
    if trouble not in TROUBLES or len(seconds) > 1 or not colon or not text.strip():
        known = ", ".join(TROUBLES)
        raise Wrong(f"a trouble ({known}), perhaps seconds, a colon and a text are wanted: `limit 60: later`")
    told: dict[str, object] = {"trouble": trouble, "text": text.strip()}
    if seconds:
        told["until"] = time.time() + _seconds(seconds[0])
    return told


def _ending(words: str) -> int:
    """Return how to crash: an exit code, or the negative of a signal's number."""
    if words.isascii() and words.isdigit():
        if len(words) > 3 or int(words) > 255:
            raise Wrong(f"{words} is not an exit code; they go up to 255")
        return int(words)
    return -_signal(words)


# The steps


def say(play: Play, step: Step) -> None:
    """Print a line."""
    _print(play.filled(step.words))


def write(play: Play, step: Step) -> None:
    """Write a file, new or not."""
    _save(play.filled(step.words), play.text(step.block), "w")


def append(play: Play, step: Step) -> None:
    """Write at the end of a file."""
    _save(play.filled(step.words), play.text(step.block), "a")


def replace(play: Play, step: Step) -> None:
    """Put lines in the place of others, which must stand in the file once; played again, it finds nothing to do."""
    path = play.filled(step.words)
    with open(path, encoding="utf-8", newline="") as file:
        text = file.read()
    old, new = play.text(step.block), play.text(step.new)
    ended = text if text.endswith("\n") else text + "\n"
    found = ("\n" + ended).count("\n" + old)
    if found == 1:
        changed = ("\n" + ended).replace("\n" + old, "\n" + new)[1:]
        _save(path, changed if text.endswith("\n") else changed.removesuffix("\n"), "w")
    elif found == 0 and new and "\n" + new in "\n" + ended:
        _print(f"{path} is already up to date")
    else:
        raise Failed(f"the old lines stand in {path} {found} times, not once")


def delete(play: Play, step: Step) -> None:
    """Remove a file."""
    os.unlink(play.filled(step.words))


def run(play: Play, step: Step) -> None:
    """Let the shell run a command; its failure is ours."""
    command = "\n".join([step.words] * bool(step.words) + step.block)
    own = {"COVEY_TASK": play.task, "COVEY_TRY": str(play.number), "ANSWER": play.answer or ""}
    code = _call(["/bin/sh", "-c", command], dict(os.environ) | own)
    if code:
        raise Failed(f"`{command.splitlines()[0]}` ended with {code}")


def commit(play: Play, step: Step) -> None:
    """Commit all that is there; nothing is fine."""
    _commit(play.filled(step.words), ["git"], dict(os.environ))


def ask(play: Play, step: Step) -> None:
    """Ask a person, and wait for a line of answer."""
    _signal_out("ask", play.filled(step.words))
    play.answer = _line("nobody answers")
    _signal_out("working")


def wait(play: Play, step: Step) -> None:
    """Wait for some seconds, or until a file is there."""
    awaited = _waited_for(play.filled(step.words))
    if isinstance(awaited, float):
        time.sleep(awaited)
    else:
        while not os.path.lexists(awaited):
            time.sleep(0.02)


def hang(play: Play, step: Step) -> None:
    """Do nothing, for ever."""
    while True:
        time.sleep(3600)


def spin(play: Play, step: Step) -> None:
    """Use the processor for some seconds of its time."""
    end = time.process_time() + _seconds(step.words)
    while time.process_time() < end:
        pass


def crash(play: Play, step: Step) -> None:
    """End at once, by an exit code or a signal."""
    ending = _ending(step.words or "1")
    if ending < 0:
        import resource
        import signal

        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        if ending not in (-signal.SIGKILL, -signal.SIGSTOP):
            signal.signal(-ending, signal.SIG_DFL)
        os.kill(os.getpid(), -ending)
        time.sleep(3600)
    os._exit(ending)


def dirt(play: Play, step: Step) -> None:
    """Leave a file that git does not know, and one that it knows changed."""
    import subprocess

    _save(play.filled(step.words), "left behind\n", "w")
    known = subprocess.run(["git", "ls-files", "-z"], stdout=subprocess.PIPE, check=False).stdout.split(b"\0")
    for path in filter(os.path.isfile, known):
        with open(path, "ab") as file:
            file.write(b"left behind\n")
        return


def nest(play: Play, step: Step) -> None:
    """Make a git repository in a folder, with a commit of its own and a file that is in none."""
    folder = play.filled(step.words)
    env = {name: value for name, value in os.environ.items() if name not in FOREIGN_GIT}
    _git(["git", "init", "-q", folder], env)
    _save(os.path.join(folder, "inner.txt"), "committed within\n", "w")
    _commit("Begin within", ["git", "-C", folder], env)
    _save(os.path.join(folder, "dirty.txt"), "not committed\n", "w")


def fork(play: Play, step: Step) -> None:
    """Leave a process behind that has a session of its own, keeps our output open, and ends after some seconds."""
    seconds = _seconds(step.words)
    child = os.fork()
    if child == 0:
        os.setsid()
        time.sleep(seconds)
        os._exit(0)
    _print(f"left process {child} behind")


def ignore(play: Play, step: Step) -> None:
    """Take no notice of a signal from now on."""
    import signal

    signal.signal(_signal(step.words), signal.SIG_IGN)


def result(play: Play, step: Step) -> None:
    """Say what came of the work."""
    _signal_out("result", play.filled(step.words))


def fail(play: Play, step: Step) -> None:
    """Say that the work cannot go on, and end."""
    _signal_out("failed", play.filled(step.words))
    raise Failed(play.filled(step.words))


def trouble(play: Play, step: Step) -> None:
    """Say that the work cannot go on for a trouble that has a name, and end."""
    told = _refusal(play.filled(step.words))
    _signal_out("failed", more=told)
    raise Failed(str(told["text"]))


def limited(play: Play, step: Step) -> None:
    """Say that the provider put it off, and go on."""
    _signal_out("limited", more=_refusal(play.filled(step.words)))


def spend(play: Play, step: Step) -> None:
    """Say what a call of a model cost."""
    play.calls += 1
    _signal_out("spent", more={"call": f"call-{play.calls}", **_usage(play.filled(step.words))})


def call(play: Play, step: Step) -> None:
    """Say that a tool was used, in words alone."""
    play.calls += 1
    tool, _, about = play.filled(step.words).partition(" ")
    _signal_out("calls", more={"id": f"call-{play.calls}", "tool": tool, "about": about})
    _signal_out("called", more={"id": f"call-{play.calls}"})


def listen(play: Play, step: Step) -> None:
    """Wait for a line, and print it."""
    play.answer = _line("nobody says anything")
    _print(f"heard: {play.answer}")


def flood(play: Play, step: Step) -> None:
    """Print lines, as many bytes in all as told."""
    left = _bytes(step.words)
    chunk = (b"flood " * 13 + b"\n") * 800
    while left > 0:
        _write(chunk if left >= len(chunk) else chunk[: left - 1] + b"\n")
        left -= len(chunk)


STEPS: dict[str, tuple[Callable[[Play, Step], None], str, bool, Callable[[str], object] | None]] = {
    "say": (say, WORDS, False, None),
    "write": (write, WORDS, True, None),
    "append": (append, WORDS, True, None),
    "replace": (replace, WORDS, True, None),
    "delete": (delete, WORDS, False, None),
    "run": (run, WORDS, True, None),
    "commit": (commit, WORDS, False, None),
    "ask": (ask, WORDS, False, None),
    "wait": (wait, WORDS, False, _waited_for),
    "hang": (hang, NOTHING, False, None),
    "spin": (spin, WORDS, False, _seconds),
    "crash": (crash, MAYBE, False, _ending),
    "dirt": (dirt, WORDS, False, None),
    "nest": (nest, WORDS, False, None),
    "fork": (fork, WORDS, False, _seconds),
    "ignore": (ignore, WORDS, False, _signal),
    "result": (result, WORDS, False, None),
    "fail": (fail, WORDS, False, None),
    "flood": (flood, WORDS, False, _bytes),
    "trouble": (trouble, WORDS, False, _refusal),
    "limited": (limited, WORDS, False, _refusal),
    "spend": (spend, WORDS, False, _usage),
    "call": (call, WORDS, False, None),
    "listen": (listen, NOTHING, False, None),
}
"""Every step: what plays it, whether it takes words, whether indented lines, and what checks its words."""


# What the steps share


def _print(line: str) -> None:
    _write(line.encode("utf-8", "replace") + b"\n")


def _write(data: bytes) -> None:
    """Write to the output at once: nothing may wait in a buffer when we crash."""
    while data:
        data = data[os.write(1, data) :]


def _signal_out(kind: str, text: str | None = None, more: dict[str, object] | None = None) -> None:
    import json

    told: dict[str, object] = {"covey": kind, **({} if text is None else {"text": text}), **(more or {})}
    _print(json.dumps(told, ensure_ascii=False))


def _line(wrong: str) -> str:
    """Return the next line of our input; without one, `wrong` is what went wrong."""
    line = sys.stdin.buffer.readline() if sys.stdin else b""
    if not line:
        raise Failed(f"{wrong}, since the input has ended")
    return line.decode("utf-8", "replace").strip()


def _save(path: str, text: str, mode: str) -> None:
    folder = os.path.dirname(path)
    if folder:
        os.makedirs(folder, exist_ok=True)
    with open(path, mode, encoding="utf-8", newline="") as file:
        file.write(text)


def _call(argv: list[str], env: dict[str, str]) -> int:
    """Run a program with our output and without input, and return how it ended."""
    nothing = (os.POSIX_SPAWN_OPEN, 0, "/dev/null", os.O_RDONLY, 0)
    try:
        child = os.posix_spawnp(argv[0], argv, env, file_actions=[nothing])
    except OSError as error:
        raise Failed(f"{argv[0]} cannot be run: {error.strerror}") from None
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def _git(argv: list[str], env: dict[str, str]) -> None:
    code = _call(argv, env)
    if code:
        raise Failed(f"`{' '.join(argv)}` ended with {code}")


def _commit(message: str, git: list[str], env: dict[str, str]) -> None:
    _git([*git, "add", "--all"], env)
    if _call([*git, "diff", "--cached", "--quiet"], env) == 0:
        _print("nothing to commit")
    else:
        _git([*git, "commit", "--quiet", "--message", message], env)


# The whole


def _steps_for(text: str, play: Play) -> list[Step]:
    """Return the steps of a body; a task that is only a title gets a note about it, committed."""
    if text.strip():
        return parse(text)
    name = "".join(letter if letter.isalnum() or letter in "-_" else "-" for letter in play.task) or "task"
    note = Step(0, "write", f"notes/{name}.md", [f"# {play.title}", "", f"{play.task}, by the scripted agent."], [])
    return [note, Step(0, "commit", play.title or play.task, [], [])]


def _number_of_try() -> int:
    told = os.environ.get("COVEY_TRY", "")
    return max(1, int(told)) if told.isascii() and told.isdigit() and len(told) < 10 else 1


def _complain(what: str) -> None:
    os.write(2, f"script: {what}\n".encode("utf-8", "replace"))


def main(argv: list[str]) -> int:
    """Play the script in a file on a task, in the folder where we are."""
    if len(argv) != 3:
        _complain("this takes a file with a script, a task and its title")
        return 2
    play = Play(argv[1], argv[2], _number_of_try())
    try:
        with open(argv[0], encoding="utf-8", newline="") as file:
            steps = _steps_for(file.read(), play)
    except (Wrong, OSError, UnicodeDecodeError) as error:
        _complain(str(error))
        return 2
    for step in steps:
        if play.number in step.tries:
            try:
                STEPS[step.verb][0](play, step)
            except (Failed, Wrong, OSError, ValueError) as error:
                _complain(f"line {step.line}: {step.verb}: {error}")
                return 1
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except KeyboardInterrupt:
        os._exit(130)
