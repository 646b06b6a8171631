"""Blame: which commit a line comes from, and what that commit says of its task."""

from __future__ import annotations

from subprocess import CompletedProcess

from covey.errors import Invalid, NotFound, Refused, ToolFailed
from covey.git.candidates import commit_messages
from covey.git.candidates.candidates import readable
from covey.git.candidates.commit_messages import Trailer
from covey.git.project import Project
from covey.git.run import complaint, git, try_git
from covey.values import dataclass

BLAME_TIMEOUT_S = 60.0


@dataclass(frozen=True)
class Origin:
    """The commit that wrote a line, where the line was then, and what the commit says at its end."""

    commit: str
    path: str
    line: int
    author: str
    email: str
    time: float
    summary: str
    trailers: tuple[Trailer, ...] = ()

    def trailer(self, key: str) -> str | None:
        """Return the last value of a trailer: the one that was written when the commit landed."""
        found = [value for name, value in self.trailers if name.casefold() == key.casefold()]
        return found[-1] if found else None


def who(project: Project, file: str, line: int, rev: str | None = None) -> Origin:
    """Return where a line comes from: of the file as it lies in the checkout, or as it is in `rev`.

    `file` is named from the top of the repository. Commits that blame.ignoreRevsFile names are looked through.
    """
    if line < 1:
        raise Invalid("Lines are counted from 1.")
    if not file or "\0" in file:
        raise Invalid("The name of a file is missing.")
    at = rev or ("HEAD" if project.bare else None)
    if at is not None and at.startswith("-"):
        raise NotFound(f"There is no commit {at}.")
    words = ("blame", "--no-textconv", "--porcelain", "-L", f"{line},{line}", *((at,) if at else ()), "--", file)
    env = {"GIT_LITERAL_PATHSPECS": "1"}
    asked = try_git(*words, at=project.root, env=env, patience=BLAME_TIMEOUT_S, discover=True)
    if asked.returncode != 0:
        raise _failure(asked, file, line, at)
    return _origin(project, asked.stdout, file, line)


def later(project: Project, commit: str) -> list[str]:
    """Return the commits from a commit to the one checked out, the oldest first; none if it is not on the way."""
    asked = try_git("rev-list", "--reverse", "--ancestry-path", f"{commit}..HEAD", at=project.root, discover=True)
    return asked.stdout.decode().split() if asked.returncode == 0 else []


def _failure(asked: CompletedProcess[bytes], file: str, line: int, rev: str | None) -> Exception:
    said = asked.stderr
    where = f" in {rev}" if rev else ""
    if b"has only" in said:
        return NotFound(f"{file}{where} has no line {line}.")
    if b"no such path" in said or b"Cannot lstat" in said or b"outside repository" in said:
        hint = "" if rev else "Name a file that git knows, from the top of the repository."
        return NotFound(f"There is no file {file}{where}.", hint=hint)
    if b"bad object" in said or b"bad revision" in said or b"unknown revision" in said or b"ambiguous argument" in said:
        return NotFound(f"There is no commit {rev}.")
    if b"object name list" in said:
        return Invalid(
            f"git blame stops at blame.ignoreRevsFile: {complaint(asked)}.",
            hint="Make that file, or take the setting away with git config --unset blame.ignoreRevsFile.",
        )
    return ToolFailed(f"git blame failed: {complaint(asked)}.")


def _origin(project: Project, printed: bytes, file: str, line: int) -> Origin:
    head, *lines = printed.split(b"\n")
    commit, original = head.decode().split(" ")[:2]
    if not commit.strip("0"):
        raise Refused(f"Line {line} of {file} is not committed yet.", hint="Commit it, or ask for a line of main.")
    told = (each.partition(b" ") for each in lines if each and not each.startswith(b"\t"))
    facts = {name.decode("utf-8", "replace"): value for name, _, value in told}
    words = ("show", "-s", "--no-show-signature", "--encoding=UTF-8", "--format=%B", "--end-of-options", commit)
    message = git(*words, at=project.common).decode("utf-8", "replace")
    return Origin(
        commit=commit,
        path=_path(facts.get("filename", b"")),
        line=int(original),
        author=facts.get("author", b"").decode("utf-8", "replace"),
        email=facts.get("author-mail", b"").decode("utf-8", "replace").strip("<>"),
        time=float(facts.get("author-time", b"0")),
        summary=facts.get("summary", b"").decode("utf-8", "replace"),
        trailers=tuple(commit_messages.trailers_of(message)),
    )


def _path(name: bytes) -> str:
    """Return a path that git may have put into quotes, with the escapes of C for what is not plain."""
    quoted = name.startswith(b'"')
    return readable(name[1:-1].decode("unicode_escape").encode("latin-1") if quoted else name)
