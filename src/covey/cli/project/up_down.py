"""covey up and covey down: the daemon's beginning and end."""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import ipaddress
import json
import os
import shutil
import socket
import subprocess
from pathlib import Path

from covey.cli.frame.client import Client, Json
from covey.cli.frame.command import Command, flag, option
from covey.cli.project.daemon import (
    DAEMON_TIMEOUT_S,
    answering,
    comes_true,
    died,
    errand,
    have,
    keep_name,
    keeping,
    kept_name,
    lasting,
    obituary,
    plain_command,
    stop_daemon,
    tell_other_path,
)
from covey.errors import CoveyError, Invalid, Refused, ToolFailed, Unavailable
from covey.git import project as projects
from covey.git.project import Project


def up(args: argparse.Namespace, client: Client) -> None:
    """Start the daemon, unless it runs, and say where it answers."""
    _check_options(args)
    project = projects.find(Path(client.folder)).must_be_begun()  # git says what no daemon could be started in
    if args.service:
        keep_name(project, args.name)
        with keeping(project):
            switch_on(project, _command(project, args), as_json=args.json)
        return
    dead = _died_unless_lost(client)
    with keeping(project):
        said = lasting(project)
        if said is not None and args.foreground:
            raise Refused(f"The daemon is running already, as process {said['pid']}.", hint="covey down stops it.")
        if said is not None and (args.bind or args.port or args.name):
            raise Refused("The daemon is running already.", hint="covey down first, then covey up with these options.")
        keep_name(project, args.name)
        if args.foreground:
            command = [*_command(project, args), "--foreground", *(["--json"] if args.json else [])]
            os.execv(command[0], command)
        said, own = have(project, _command(project, args))
    if not own and not args.json:  # a script that asks for the address has no use for it
        tell_other_path(project)
    if dead and own and not args.json:
        print(obituary(client))
    back = [each["name"] for each in client.ask("fleet.start", fields={}).value] if args.agents else None
    _say_up(project, said, back, as_json=args.json)


def _check_options(args: argparse.Namespace) -> None:
    """Refuse options that do not go together."""
    if args.bind is None and (args.certificate or args.key):
        raise Invalid("--certificate and --key are for --bind.", hint="covey up --bind HOST:PORT answers with TLS.")
    if args.agents and (args.service or args.foreground):
        raise Invalid("--agents is for a daemon in the background.", hint="covey up --agents does it when that is up.")


def _command(project: Project, words: argparse.Namespace) -> list[str]:
    command = plain_command(project)
    if words.port:
        command += ["--port", str(words.port)]
    if words.bind:
        certificate, key = certificate_for(project, words)
        command += ["--bind", words.bind, "--certificate", str(certificate), "--key", str(key)]
    return command


def _say_up(project: Project, said: Json, back: list[str] | None, *, as_json: bool) -> None:
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

    def at_work() -> list[Json]:
        return [session for session in client.ask("session.list").value if session["run"]]

    ended = [session["name"] for session in at_work() if session["kind"] == "run"]
    client.ask("fleet.stop", fields={})
    if not comes_true(lambda: not at_work(), DAEMON_TIMEOUT_S, 0.05):
        raise Unavailable("Some agents have not stopped.", hint="covey session list shows them; try again.")
    return ended, client.ask("session.offer").value["stopped_together"]


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
        raise argparse.ArgumentTypeError(f"{text[:80]!r} is not an address; write HOST:PORT, as in 192.0.2.7:8443")
    _port(port)
    return text


def _host(text: str) -> str:
    """Return HOST or HOST:PORT as it is, if it is that."""
    return text if ":" not in text and _address(f"{text}:443") else _address(text)


# The certificate with which a daemon answers beyond loopback


def certificate_for(project: Project, words: argparse.Namespace) -> tuple[Path, Path]:
    """Return certificate and key for --bind: those that were named, or self-signed ones that stay the project's."""
    if (words.certificate is None) is not (words.key is None):
        raise Invalid("--certificate and --key belong together.")
    if words.certificate is not None:
        for path in (words.certificate, words.key):
            if not os.path.isfile(path):
                raise Invalid(f"There is no file {path}.")
        return words.certificate.resolve(), words.key.resolve()
    folder = project.state / "tls"
    certificate, key, made_for = folder / "certificate.pem", folder / "key.pem", folder / "names"
    names = _names(words.bind.rpartition(":")[0].strip("[]"), kept_name(project))
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


# A unit of the user's systemd


def switch_on(project: Project, command: list[str], *, as_json: bool) -> None:
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
        return
    print(f"Wrote {unit}.")
    if why:
        print(f"It is not switched on yet: {why}. Type:\n  {switch_on}")
    else:
        print("It is switched on: systemd starts the daemon when you log in, and again should it die.")
        print("loginctl enable-linger lets it run while you are logged out; covey down stops it until then.")


def _enable(project: Project, unit: str) -> str:
    """Switch a unit on and let it take over from a daemon that runs; return why that cannot be, empty if it is done."""
    if shutil.which("systemctl") is None:
        return "there is no systemctl here"
    if problem := _systemctl("daemon-reload"):
        return problem
    stop_daemon(project)  # it holds the lock; agents at work go on
    if problem := _systemctl("enable", "--now", unit):
        return problem
    if comes_true(lambda: answering(project), DAEMON_TIMEOUT_S, 0.05):
        return ""
    return f"systemd has started it, and it does not answer (journalctl --user -u {unit} has what it said)"


def _systemctl(*words: str) -> str:
    """Ask the systemd of the user, and return what it complained of."""
    try:
        done = subprocess.run(
            ["systemctl", "--user", *words], stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace",
            timeout=DAEMON_TIMEOUT_S, check=False,
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
    "up": Command("start the daemon of this repository in the background, and return when it answers", (
        flag("--foreground", "stay in the foreground, and show the log"),
        flag("--service", "install a systemd user unit that keeps the daemon running"),
        option("--port", type=_port, metavar="PORT", help="the port on loopback (remembered)"),
        option("--bind", type=_address, metavar="HOST:PORT", help="also listen on this address, with TLS"),
        option("--name", type=_host, metavar="HOST[:PORT]",
               help="also serve the page under this name: the one of your certificate, or of a tunnel "
                    "(remembered; none forgets it)"),
        option("--certificate", type=Path, metavar="FILE", help="certificate for --bind (default: self-signed)"),
        option("--key", type=Path, metavar="FILE", help="the private key of the certificate"),
        flag("--agents", "bring back the sessions that covey down --agents stopped, as they were"),
    ), up, owner=True, example="covey up\ncovey up --agents   and the sessions that were stopped with it\n"
                   "covey up --bind 192.0.2.7:8443\ncovey up --name box.example.ts.net\n"
                   "covey up --json | jq -r .url   the address at which it answers",
                  prints="{url, token, pid}, and {bind, fingerprint} if it answers beyond loopback; "
                         "with --agents {sessions} too; with --service {unit, enable, enabled, why}"),
    "down": Command("stop the daemon of this repository; agents at work go on until it is up again",
                    flag("--agents", "stop the agents too; their work is kept"),
                    down, owner=True, example="covey down\ncovey down --agents   stops the agents too",
                    prints="{stopped, pid, running, ended, back, died}"),
}  # fmt: skip
