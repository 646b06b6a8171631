"""covey up and covey down: the daemon's beginning and end."""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import ipaddress
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from covey import proof
from covey.cli.client import Client, check_own, is_daemon, own_file
from covey.cli.command import Command, Parser
from covey.cli.wire import Lost, Wire
from covey.core.figures import one
from covey.errors import CoveyError, Denied, Invalid, Refused, ToolFailed, Unavailable
from covey.git import project as projects
from covey.git.project import Project
from covey.store.lock import NeedLock, WriterLock

PATIENCE = 60.0
OTHERS_PATIENCE = 2.0
"""Seconds after which a daemon that has not gone is taken to be needed by another command."""
ASK_TO_END = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def answering(project: Project) -> dict[str, Any] | None:
    """Return where the daemon says that it answers, if it does answer there."""
    try:
        said = _said(project)
        if not is_daemon(int(said["pid"])) or not _is_locked(project) or not _holds(project, int(said["pid"])):
            return None
        token = project.token()
        wire = Wire(f"http://127.0.0.1:{int(said['port'])}", token, proof.credential(token, proof.OWNER))
        try:
            status, _, _ = wire.ask("GET", "/api/status", b"", None)
        finally:
            wire.close()
        # Read again: what a killed daemon had said is gone before another one answers at its port.
        return _said(project) if status == 200 else None
    except (OSError, ValueError, KeyError, TypeError, Lost):
        return None


def _said(project: Project) -> dict[str, Any]:
    """Return what the daemon says of itself, if nobody else can have written it."""
    with own_file(str(project.daemon_file)) as file:
        said: dict[str, Any] = json.load(file)
    return said


def _up_arguments(parser: Parser) -> None:
    parser.add_argument("--foreground", action="store_true", help="stay, and show the log")
    parser.add_argument(
        "--service", action="store_true", help="keep it alive: let the systemd of the user start it, now and again"
    )
    parser.add_argument("--port", type=_port, metavar="PORT", help="the port on loopback (kept from then on)")
    parser.add_argument("--bind", type=_address, metavar="HOST:PORT", help="answer beyond loopback too, with TLS")
    parser.add_argument(
        "--name",
        type=_host,
        metavar="HOST[:PORT]",
        help="a name of yours under which the page is asked too: of your certificate, or of a tunnel "
        "(kept from then on; none forgets it)",
    )
    parser.add_argument(
        "--certificate", type=Path, metavar="FILE", help="certificate for --bind (default: self-signed)"
    )
    parser.add_argument("--key", type=Path, metavar="FILE", help="private key of the certificate")
    parser.add_argument(
        "--agents", action="store_true", help="bring back the sessions that covey down --agents stopped, as they were"
    )


def _down_arguments(parser: Parser) -> None:
    parser.add_argument("--agents", action="store_true", help="stop the agents too; their work is kept")


def ensure_up(project: Project) -> bool:
    """Have a daemon that stays until `covey down`, and say whether it was started."""
    with _keeping(project):
        _, own = _have(project, _plain_command(project))
    return own


def ensure_while_needed(project: Project) -> bool:
    """Have a daemon for whoever holds the lock of those who need one, and say whether it was started.

    It goes by itself once nobody needs it.
    """
    project.token()
    _, own = _have(project, [*_plain_command(project), "--while-needed"])
    return own


def leave(project: Project, client: Client, need: NeedLock) -> list[str]:
    """Need the daemon no more, and return for whom else it stays; if for nobody, return when it has gone."""
    pid = running(project)
    stays_for: list[str] = []
    if pid is not None:
        with contextlib.suppress(CoveyError):
            stays_for = client.ask("status").value["stays_for"]
    others = not need.try_alone()
    need.give()
    if pid is None or stays_for:
        return stays_for
    deadline = time.monotonic() + (OTHERS_PATIENCE if others else PATIENCE)
    while is_daemon(pid) and _announced(project) in (pid, None):
        if time.monotonic() > deadline:
            return ["another covey run"]
        time.sleep(0.02)
    return []


@contextlib.contextmanager
def _keeping(project: Project) -> Iterator[None]:
    """Let whatever daemon there is, or will be, stay until `covey down`."""
    project.token()  # neither we nor a new daemon could go on without it
    with NeedLock(project.needed):
        project.kept.touch(mode=0o600)
        yield


def died(client: Client) -> bool:
    """Say whether the last daemon ended without being told to, by what the log says; none runs now."""
    first = {"newest": True, "limit": 1}
    asked = (client.ask("log.list", fields=first | {"kind": f"daemon.{what}"}).value for what in ("started", "stopped"))
    started, stopped = (found[0]["seq"] if found else 0 for found in asked)
    return bool(started > stopped and client.url is None)


def _have(project: Project, command: list[str]) -> tuple[dict[str, Any], bool]:
    """Return where a daemon answers that stays, or is ours, and whether we started it."""
    while True:
        said = _lasting(project)
        if said is not None:
            return said, False
        said, own = _start(project, command)
        if own or not said.get("errand"):
            return said, own


def _lasting(project: Project) -> dict[str, Any] | None:
    """Return where a daemon answers that stays; one that only runs another command's errand is gone in a moment."""
    deadline = time.monotonic() + PATIENCE
    while _runs_errand(project):
        if time.monotonic() > deadline:
            raise Unavailable("Another covey command has not come to its end.", hint="Try again when it has.")
        time.sleep(0.05)
    return answering(project)


def _runs_errand(project: Project) -> bool:
    """Say whether a daemon of another command's errand lives, also if it answers no more."""
    try:
        said = _said(project)
        return bool(said.get("errand")) and is_daemon(int(said["pid"]))
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return False


@contextlib.contextmanager
def errand(client: Client) -> Iterator[bool]:
    """Have a daemon for as long as a command needs one; one of our own starts no agent, and is gone afterwards."""
    project = projects.find(Path(client.folder)).must_be_begun()
    with NeedLock(project.needed):
        project.token()
        said, own = _have(project, [*_plain_command(project), "--hold"])
        try:
            yield own
        finally:
            if own:
                stop_daemon(project, only=said["pid"])


def stop_daemon(project: Project, *, only: int | None = None) -> int | None:
    """Stop the daemon if it runs, and return which process it was; with `only`, no other than that one."""
    pid = _holder(project)
    if pid is not None and only in (None, pid):
        try:
            os.kill(pid, signal.SIGTERM)
            os.kill(pid, signal.SIGCONT)  # one that stands still would not hear it
        except ProcessLookupError:
            pass  # it has ended by itself
        except PermissionError:
            raise Denied(f"Process {pid} is not yours to stop.", hint="Whoever started the daemon stops it.") from None
        _wait_until_free(project, pid)
    return pid


def up(args: argparse.Namespace, client: Client) -> int:
    """Start the daemon, unless it runs, and say where it answers."""
    if args.bind is None and (args.certificate or args.key):
        raise Invalid("--certificate and --key are for --bind.", hint="covey up --bind HOST:PORT answers with TLS.")
    if args.agents and (args.service or args.foreground):
        raise Invalid("--agents is for a daemon in the background.", hint="covey up --agents does it when that is up.")
    project = projects.find(Path(client.folder)).must_be_begun()
    if args.service:
        _keep_name(project, args.name)
        with _keeping(project):
            return _service(project, _command(project, args), as_json=args.json)
    dead = _died_unless_lost(client)
    with _keeping(project):
        said = _lasting(project)
        if said is not None and args.foreground:
            raise Refused(f"The daemon is running already, as process {said['pid']}.", hint="covey down stops it.")
        if said is not None and (args.bind or args.port or args.name):
            raise Refused("The daemon is running already.", hint="covey down first, then covey up with these options.")
        _keep_name(project, args.name)
        if args.foreground:
            command = [*_command(project, args), "--foreground", *(["--json"] if args.json else [])]
            os.execv(command[0], command)
        said, own = _have(project, _command(project, args))
    if dead and own and not args.json:
        print(obituary(client))
    back = [each["name"] for each in client.ask("fleet.start", fields={}).value] if args.agents else None
    _say_up(project, said, back, as_json=args.json)
    return 0


def obituary(client: Client) -> str:
    """Say that the last daemon has died, and how many agents went on without it."""
    agents = 0
    with contextlib.suppress(CoveyError):
        agents = sum(bool(session["run"]) for session in client.ask("session.list").value)
    went_on = f" {one(agents, 'agent')} went on without it." if agents else ""
    return f"The daemon had died: it was not told to end.{went_on}"


def _say_up(project: Project, said: dict[str, Any], back: list[str] | None, *, as_json: bool) -> None:
    answer = {"url": said["url"], "token": project.token(), "pid": said["pid"]}
    answer |= {} if back is None else {"sessions": back}
    beyond = {name: said[name] for name in ("bind", "fingerprint") if name in said}
    if as_json:
        print(json.dumps(answer | beyond))
        return
    print(f"covey is up at {said['url']} (process {said['pid']}).")
    print(f"covey open shows the page, at {said.get('page', said['url'])}.")
    if beyond:
        print(f"Also at {said['bind']}, certificate SHA-256 {said['fingerprint']}.")
    if back is not None:
        print(f"Back: {', '.join(back)}." if back else "There is no session to bring back.")


def down(args: argparse.Namespace, client: Client) -> None:
    """Stop the daemon, if it runs, also where its board is gone."""
    project = projects.find(Path(client.folder))
    if not project.lock.exists():
        project.must_be_begun()
    ended: list[str] = []
    back: list[str] = []
    if args.agents:
        with errand(client):
            ended, back = _stop_agents(client)
    dead = _died_unless_lost(client)
    project.kept.unlink(missing_ok=True)
    pid = stop_daemon(project)
    running: list[str] = []
    with contextlib.suppress(CoveyError):  # it is down, also where the board cannot be read
        running = [session["name"] for session in client.ask("session.list").value if session["run"]]
    if args.json:
        stopped = {"stopped": pid is not None, "pid": pid, "running": running, "ended": ended, "back": back}
        print(json.dumps(stopped | {"died": dead and pid is None}))
        return
    if ended:
        whose = "it" if len(ended) == 1 else "they"
        print(f"Stopped {', '.join(ended)}; what {whose} had not committed is kept (covey rescue list).")
    died_before = "covey was not up: its daemon had died." if dead else "covey was not up."
    print("covey is down." if pid else died_before)
    if back:
        print(f"covey up --agents brings back {', '.join(back)}.")
    if running:
        print(f"Still at work: {', '.join(running)}. covey up takes them up again; covey down --agents stops them.")


def _died_unless_lost(client: Client) -> bool:
    """Say whether the last daemon has died; nobody knows where the board cannot be read."""
    try:
        with client:
            return died(client)
    except CoveyError:
        return False


def _stop_agents(client: Client) -> tuple[list[str], list[str]]:
    """Stop every session that covey runs, and wait until nothing of them is alive.

    Return those that were at work, and those that `covey up --agents` would bring back.
    """
    at_work = [each["name"] for each in client.ask("session.list").value if each["kind"] == "run" and each["run"]]
    client.ask("fleet.stop", fields={})
    deadline = time.monotonic() + PATIENCE
    while any(session["run"] for session in client.ask("session.list").value):
        if time.monotonic() > deadline:
            raise Unavailable("Some agents have not stopped.", hint="covey session list shows them; try again.")
        time.sleep(0.05)
    return at_work, client.ask("session.offer").value["stopped_together"]


def _port(text: str) -> int:
    if not text.isdigit() or not 1 <= int(text) <= 65535:
        raise argparse.ArgumentTypeError("a port is a number from 1 to 65535")
    return int(text)


def _address(text: str) -> str:
    """Return HOST:PORT as it is, if it is that; a host with colons stands in brackets."""
    host, _, port = text.rpartition(":")
    bare = host[1:-1] if host.startswith("[") and host.endswith("]") else host
    plain = bare.isascii() and bare.isprintable() and not any(mark in bare for mark in " /@[]")
    if not bare or not plain or (":" in bare and bare == host):
        raise argparse.ArgumentTypeError(f"{text[:80]!r} is no address; write HOST:PORT, as in 192.0.2.7:8443")
    _port(port)
    return text


def _host(text: str) -> str:
    """Return HOST or HOST:PORT as it is, if it is that."""
    return text if ":" not in text and _address(f"{text}:443") else _address(text)


def _keep_name(project: Project, name: str | None) -> None:
    """Keep the name under which the page is asked from now on, or forget it."""
    kept = project.state / "name"
    if name == "none":
        kept.unlink(missing_ok=True)
    elif name is not None:
        part = kept.with_suffix(".part")
        part.write_text(name)
        part.rename(kept)


def _kept_name(project: Project) -> str:
    kept = project.state / "name"
    return kept.read_text().strip() if kept.exists() else ""


def _plain_command(project: Project) -> list[str]:
    name = _kept_name(project)
    named = ["--name", name] if name else []
    return [sys.executable, "-m", "covey.daemon", str(project.root), *named]


def _command(project: Project, words: argparse.Namespace) -> list[str]:
    command = _plain_command(project)
    if words.port:
        command += ["--port", str(words.port)]
    if words.bind:
        certificate, key = _certificate(project, words)
        command += ["--bind", words.bind, "--certificate", str(certificate), "--key", str(key)]
    return command


def _start(project: Project, command: list[str]) -> tuple[dict[str, Any], bool]:
    """Start the daemon in a session of its own, and wait until it answers, or one that was faster: then ours ends."""
    printed = project.state / "daemon.out"
    # A signal has to wait until we know whom we have started; the daemon itself lets them through again.
    signal.pthread_sigmask(signal.SIG_BLOCK, ASK_TO_END)
    child: subprocess.Popen[bytes] | None = None
    try:
        with printed.open("wb") as out:
            child = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=out,
                start_new_session=True,
                cwd=project.root,
            )
        signal.pthread_sigmask(signal.SIG_UNBLOCK, ASK_TO_END)
        said = _await_answer(project, child, printed)
        own = said["pid"] == child.pid
        if not own:
            _end(child)
        return said, own
    except BaseException:
        if child is not None:
            _end(child)
        raise
    finally:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, ASK_TO_END)


def _end(child: subprocess.Popen[bytes]) -> None:
    """End a daemon that we started; one that does not hear, or for which a clock has jumped, is killed."""
    child.terminate()
    try:
        child.wait(PATIENCE)
    except subprocess.TimeoutExpired:
        child.kill()
        child.wait()


def _await_answer(project: Project, child: subprocess.Popen[bytes], printed: Path) -> dict[str, Any]:
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        said = answering(project)
        if said is not None:
            return said
        if child.poll() is not None and not _is_locked(project):
            raise _why(printed)
        time.sleep(0.02)
    raise Unavailable(
        f"The daemon does not answer after {PATIENCE:g} s.", hint=f"Look into {project.state}/daemon.log."
    )


def _why(printed: Path) -> CoveyError:
    """Return why the daemon ended at once, in its own words."""
    lines = printed.read_text(errors="replace").strip().splitlines()
    if not lines and shutil.disk_usage(printed).free == 0:  # not even that could be written
        return Unavailable("The disk is full, so the daemon cannot start.", hint="Make room and try again.")
    try:
        said = json.loads(lines[-1])
        error = CoveyError(said["error"], hint=said["hint"])
        error.exit_code = int(said["exit"])
        return error
    except (IndexError, ValueError, KeyError, TypeError):
        last = lines[-1] if lines else "it printed nothing"
        return Unavailable(f"The daemon ended at once: {last}.", hint=f"{printed} has what it printed.")


def _holder(project: Project) -> int | None:
    """Return the process that holds the project's lock as its daemon."""
    deadline = time.monotonic() + PATIENCE
    while _is_locked(project):
        pid = _announced(project)
        if pid is not None and is_daemon(pid) and _holds(project, pid):
            return pid
        unannounced = next((holder for holder in _holders(project) if is_daemon(holder)), None)
        if unannounced is not None:
            return unannounced
        if time.monotonic() > deadline:
            raise Unavailable("Something holds this project's lock and does not say what it is.", hint="Try again.")
        time.sleep(0.02)
    return None


def running(project: Project) -> int | None:
    """Return the daemon's process, if it has said where it answers and lives."""
    pid = _announced(project)
    return pid if pid is not None and is_daemon(pid) and _is_locked(project) else None


def _announced(project: Project) -> int | None:
    try:
        return int(_said(project)["pid"])
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _is_locked(project: Project) -> bool:
    """Say whether somebody writes, or is about to."""
    lock = WriterLock(project.lock)
    if lock.try_take():
        lock.give()
        return False
    return True


def _holds(project: Project, pid: int) -> bool:
    """Say whether a process holds the lock, as far as the kernel tells; in a container it may not."""
    holders = _holders(project)
    return not holders or 0 in holders or pid in holders


def _holders(project: Project) -> set[int]:
    """Return the processes that the kernel names as holders of the lock."""
    lock = project.lock.stat()
    check_own(str(project.lock), lock)
    inode = str(lock.st_ino)  # the device that the kernel names is another on some file systems
    try:
        lines = [line.split() for line in Path("/proc/locks").read_text().splitlines()]
    except OSError:
        return set()
    return {int(part[-4]) for part in lines if part[1] == "FLOCK" and part[-3].split(":")[-1] == inode}


def _wait_until_free(project: Project, pid: int) -> None:
    """Wait until the daemon has given its lock back and its process has ended."""
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        if not is_daemon(pid) and (not _is_locked(project) or not _holds(project, pid)):
            return
        time.sleep(0.02)
    raise Unavailable(f"Process {pid} has not stopped after {PATIENCE:g} s.", hint=f"kill -9 {pid} loses nothing.")


# Beyond loopback


def _certificate(project: Project, words: argparse.Namespace) -> tuple[Path, Path]:
    """Return certificate and key for --bind: those that were named, or self-signed ones that stay the project's."""
    if (words.certificate is None) is not (words.key is None):
        raise Invalid("--certificate and --key belong together.")
    if words.certificate is not None:
        for path in (words.certificate, words.key):
            if not path.is_file():
                raise Invalid(f"There is no file {path}.")
        return words.certificate.resolve(), words.key.resolve()
    folder = project.state / "tls"
    certificate, key, made_for = folder / "certificate.pem", folder / "key.pem", folder / "names"
    names = _names(words.bind.rpartition(":")[0].strip("[]"), _kept_name(project))
    if not certificate.exists() or not made_for.exists() or made_for.read_text() != names:
        folder.mkdir(mode=0o700, exist_ok=True)
        _self_signed(names, certificate, key)
        made_for.write_text(names)
    return certificate, key


def _names(host: str, named: str) -> str:
    """Return the names that a certificate for this address has to carry; an address for all carries all of ours."""
    names = [_subject_name(host), "DNS:localhost", "IP:127.0.0.1"]
    if named:
        names.append(_subject_name((named.rpartition(":")[0] or named).strip("[]")))
    if host in ("0.0.0.0", "::"):
        own = socket.gethostname()
        names.append(_subject_name(own))
        with contextlib.suppress(OSError):
            names += sorted({f"IP:{found[4][0]}" for found in socket.getaddrinfo(own, None)})
    return ",".join(dict.fromkeys(names))


def _self_signed(names: str, certificate: Path, key: Path) -> None:
    if shutil.which("openssl") is None:
        raise ToolFailed("openssl is not installed, so no certificate can be made.", hint="Install it, or name one.")
    made = subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes",
         "-days", "825", "-subj", "/CN=covey", "-addext", f"subjectAltName={names}",
         "-keyout", str(key), "-out", str(certificate)],
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    if made.returncode != 0:
        raise ToolFailed(f"openssl could not make a certificate: {made.stderr.strip().splitlines()[-1]}.")
    key.chmod(0o600)


def _subject_name(host: str) -> str:
    try:
        return f"IP:{ipaddress.ip_address(host)}"
    except ValueError:
        return f"DNS:{host}"


# As a service


def _service(project: Project, command: list[str], *, as_json: bool) -> int:
    """Write a systemd unit of the user and switch it on, or say how."""
    base = Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config")
    tag = hashlib.sha256(str(project.common).encode()).hexdigest()[:6]
    unit = base / "systemd" / "user" / f"covey-{project.name}-{tag}.service"
    unit.parent.mkdir(parents=True, exist_ok=True)
    quoted = " ".join(f'"{_escaped(part)}"'.replace("$", "$$") for part in command)
    path = _escaped(os.environ.get("PATH", os.defpath))  # systemd's own has few of the places where agents live
    unit.write_text(
        "[Unit]\n"
        f"Description=covey for {str(project.root).replace('%', '%%')}\n\n"
        "[Service]\n"
        f'Environment="PATH={path}"\n'
        f"ExecStart={quoted} --foreground\n"
        "Restart=on-failure\n"
        "RestartSec=1\n"
        "KillMode=process\n\n"
        "[Install]\n"
        "WantedBy=default.target\n"
    )
    switch_on = f"systemctl --user daemon-reload && systemctl --user enable --now {unit.name}"
    why = _enable(project, unit.name)
    if as_json:
        print(json.dumps({"unit": str(unit), "enable": switch_on, "enabled": not why, "why": why}))
        return 0
    print(f"Wrote {unit}.")
    if why:
        print(f"It is not switched on yet: {why}. Type:\n  {switch_on}")
    else:
        print("It is switched on: systemd starts the daemon when you log in, and again should it die.")
        print("loginctl enable-linger lets it run while you are logged out; covey down stops it until then.")
    return 0


def _enable(project: Project, unit: str) -> str:
    """Switch a unit on and let it take over from a daemon that runs; return why that cannot be, empty if it is done."""
    if shutil.which("systemctl") is None:
        return "there is no systemctl here"
    problem = _systemctl("daemon-reload")
    if problem:
        return problem
    stop_daemon(project)  # it holds the lock; agents at work go on
    problem = _systemctl("enable", "--now", unit)
    if problem:
        return problem
    deadline = time.monotonic() + PATIENCE
    while answering(project) is None:
        if time.monotonic() > deadline:
            return f"systemd has started it, and it does not answer (journalctl --user -u {unit} has what it said)"
        time.sleep(0.05)
    return ""


def _systemctl(*words: str) -> str:
    """Ask the systemd of the user, and return what it complained of."""
    try:
        done = subprocess.run(
            ["systemctl", "--user", *words], stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace",
            timeout=PATIENCE, check=False,
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired) as error:
        return str(error)
    lines = (done.stderr or done.stdout).strip().splitlines()
    said = lines[0].rstrip(".") if lines else f"it ended with code {done.returncode}"
    return "" if done.returncode == 0 else f"systemctl says: {said}"


def _escaped(word: str) -> str:
    """Return a word as it stands in quotes in a unit, where systemd fills in %; in commands it fills in $ too."""
    for mark, written in (("\\", "\\\\"), ('"', '\\"'), ("%", "%%")):
        word = word.replace(mark, written)
    return word


COMMANDS = {
    "up": Command("start the daemon of this repository in the background, and return when it answers", _up_arguments,
                  up, example="covey up\ncovey up --agents   and the sessions that were stopped with it\n"
                              "covey up --bind 192.0.2.7:8443\ncovey up --name box.example.ts.net\n"
                              "covey up --json | jq -r .url   the address at which it answers",
                  prints="{url, token, pid}, and {bind, fingerprint} if it answers beyond loopback; "
                         "with --agents {sessions} too; with --service {unit, enable, enabled, why}"),
    "down": Command("stop the daemon of this repository; agents at work go on until it is up again", _down_arguments,
                    down, example="covey down\ncovey down --agents   stops the agents too",
                    prints="{stopped, pid, running, ended, back, died}"),
}  # fmt: skip
