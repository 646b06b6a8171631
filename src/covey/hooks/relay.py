"""Carries what an agent asks by a hook to the daemon, and the answer back: a program that starts in milliseconds.

    python -I -S relay.py MOMENT [--state FOLDER]

It reads the hook from its standard input, posts it to COVEY_URL with COVEY_TOKEN, and prints the answer if that is a
JSON object that says something. Whoever answers there has to prove before, with the key in COVEY_PROOF or one made from
the owner's token in the state folder, that it is covey: nobody else is sent anything, or believed.

Whatever else happens it prints nothing, ends with 0 within a second and leaves a line in the file that COVEY_MISSED
names: an agent never waits for a daemon that is away. Only a question that a person decides is waited for, once the
daemon has said that it hears it.

With --state, for whom covey did not start, address and token stand in files of that folder; whom covey did start is
asked by hooks of its own, so that this one has nothing to do.
"""

# Nothing is imported that is not part of the interpreter itself: each module would cost as much as all of this.
import _signal  # type: ignore[import-not-found]
import _socket
import posix
import sys
from time import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from covey import proof
else:
    sys.path.append(__file__.rpartition("/hooks/")[0])
    import proof

    sys.path.pop()

QUICK = 1.0
"""Seconds after which the agent goes on without us."""
HELD = 3600.0
"""Seconds for which a person may think about a question."""
MAX_ANSWER_BYTES = 1024 * 1024
"""Bytes of an answer that are taken."""


def asked(stream: int) -> bytes:
    """Return all that a stream says."""
    pieces = []
    while piece := posix.read(stream, 65536):
        pieces.append(piece)
    return b"".join(pieces)


def place(words: list[str]) -> tuple[str, int, str, str] | None:
    """Return host, port, token and credential, None if nobody told us."""
    token = posix.environ.get(b"COVEY_TOKEN", b"").decode()
    if "--state" in words:
        folder = words[words.index("--state") + 1]
        return None if token else _announced(folder)
    scheme, _, rest = posix.environ.get(b"COVEY_URL", b"").decode().partition("://")
    host, _, port = rest.partition("/")[0].rpartition(":")
    return (host, int(port), token, _credential()) if scheme == "http" and host and token else None


def _credential() -> str:
    """Return what covey proves itself with to this run; one that is older than that has a folder in the state's."""
    given = posix.environ.get(b"COVEY_PROOF", b"").decode()
    state = posix.environ.get(b"COVEY_MISSED", b"").decode().rpartition("/runs/")[0]
    if given or not state:
        return given
    with open(state + "/owner.token", encoding="utf-8") as file:
        return proof.credential(file.read().strip(), proof.OWNER)


def _announced(folder: str) -> tuple[str, int, str, str] | None:
    """Return where the daemon of a project answers; its file is JSON, of which two numbers are looked for."""
    try:
        with open(folder + "/daemon.json", encoding="utf-8") as file:
            said = file.read()
        with open(folder + "/owner.token", encoding="utf-8") as file:
            token = file.read().strip()
    except OSError:
        return None
    pid, port = proof.number_of(said, "pid"), proof.number_of(said, "port")
    credential = proof.credential(token, proof.OWNER)
    return ("127.0.0.1", port, token, credential) if port and token and _is_daemon(pid) else None


def _is_daemon(pid: int) -> bool:
    """Say whether a process is a daemon of covey: where a killed one answered, a stranger may listen by now."""
    if not pid:
        return False
    try:
        if posix.stat(f"/proc/{pid}").st_uid != posix.geteuid():
            return False
        with open(f"/proc/{pid}/cmdline", "rb") as file:
            return b"covey.daemon" in file.read()
    except OSError:
        try:
            posix.stat("/proc/self/cmdline")
        except OSError:  # there is nothing to ask: whoever lives is believed
            posix.kill(pid, 0)
            return True
        return False


def answer(moment: str, host: str, port: int, token: str, credential: str) -> bytes:
    """Return what the daemon answers to the hook on our standard input; fails with OSError or ValueError."""
    agent, body = posix.getppid(), asked(0)
    held = moment == "PermissionRequest"
    expects = "Expect: 100-continue\r\n" if held else ""
    head = (
        f"POST /hooks/{moment} HTTP/1.1\r\nHost: {host}:{port}\r\nAuthorization: Bearer {token}\r\n{expects}"
        f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\nConnection: close\r\n\r\n"
    )
    connection = _socket.socket(_socket.AF_INET, _socket.SOCK_STREAM)
    connection.connect((host, port))
    _let_prove(connection, f"{host}:{port}", credential)
    connection.sendall(head.encode() + body)
    size, pieces = 0, [b""]
    while size <= MAX_ANSWER_BYTES and (piece := connection.recv(65536)):
        if held and not size:  # the daemon hears us; one that stands still would let us wait for nobody
            _wait_for_a_person(agent)
        pieces.append(piece)
        size += len(piece)
    return _body(b"".join(pieces))


def _let_prove(connection: _socket.socket, host: str, credential: str) -> None:
    """Refuse to go on with anybody who does not know what our daemon knows."""
    name, key = proof.parted(credential)
    if not key:
        raise ValueError("nothing could prove who answers")
    proof.require(connection, name, key, posix.urandom(16).hex(), host)


def _wait_for_a_person(agent: int) -> None:
    """Let the answer take its time, as long as the agent that asked is there."""
    until = time() + HELD

    def look(number: int, frame: object) -> None:
        if posix.getppid() != agent or time() > until:
            raise TimeoutError("nobody decided")

    _signal.signal(_signal.SIGALRM, look)
    _signal.setitimer(_signal.ITIMER_REAL, QUICK, QUICK)


def _body(said: bytes) -> bytes:
    """Return the body of an HTTP answer that is good and whole; that we are heard may stand before it."""
    head, _, body = said.partition(b"\r\n\r\n")
    if head.startswith(b"HTTP/1.1 100 "):
        head, _, body = body.partition(b"\r\n\r\n")
    lines = head.split(b"\r\n")
    status = lines[0].split(b" ")
    if len(status) < 2 or status[1] != b"200":
        raise ValueError("answered " + status[1].decode() if len(status) > 1 else "cut off")
    lengths = [line.partition(b":")[2] for line in lines[1:] if line.lower().startswith(b"content-length:")]
    if len(lengths) != 1 or int(lengths[0]) != len(body):
        raise ValueError("cut off")
    if body[:1] != b"{" or body[-1:] != b"}":
        raise ValueError("answered nonsense")
    return body


def _late(number: int, frame: object) -> None:
    raise TimeoutError("too late")


def missed(moment: str, why: str) -> None:
    """Note that the daemon was not asked, where covey looks when it is back."""
    path = posix.environ.get(b"COVEY_MISSED")
    if not path:
        return
    line = f"{time():.3f} {moment} {' '.join(why.split())}\n".encode("utf-8", "replace")
    try:
        posix.write(posix.open(path, posix.O_WRONLY | posix.O_APPEND | posix.O_CREAT, 0o600), line)
    except OSError:
        return  # the run's folder is gone, and so is whoever would read it


def main(words: list[str]) -> None:
    """Carry one hook; nothing that goes wrong is ever the agent's business."""
    moment = words[0] if words and words[0].isascii() and words[0].isalpha() else "unknown"
    _signal.signal(_signal.SIGALRM, _late)
    _signal.setitimer(_signal.ITIMER_REAL, QUICK)
    try:
        try:
            daemon = place(words)
            said = b"{}" if daemon is None else answer(moment, *daemon)
        finally:
            _signal.setitimer(_signal.ITIMER_REAL, 0)
        while said and said != b"{}":
            said = said[posix.write(1, said) :]
    except Exception as error:  # noqa: BLE001 - the agent must not stumble over us, whatever it is
        missed(moment, getattr(error, "strerror", None) or str(error))


if __name__ == "__main__":
    main(sys.argv[1:])
    posix._exit(0)
