"""The log in git and back: export, import, adoption, and what the commands of the log's care say."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import apsw
import pytest

from covey.app.app import Request
from covey.app.context import Principal
from covey.app.verbs import VERBS, read_query
from covey.cli.main import dispatch
from covey.core.events import Line, digest
from covey.errors import CoveyError, Invalid, NotFound, Refused, ToolFailed
from covey.git import identity, log_refs
from covey.git import project as projects
from covey.git.project import Project
from covey.store.engine import audit, pruning, rows
from covey.store.engine.backup import backup, snapshot
from covey.store.engine.lock import WriterLock
from tests.worlds import stories
from tests.worlds.serving import Daemon
from tests.worlds.stories import LONG, Teller, a_rich_story, lives

LONG_BODY = "A body that is too long for a row. " * 600
SECRET_BODY = "Between you and me: the body"
SECRET_MAIL = "Between you and me: the mail"


def git(folder: Path, *words: str, stdin: bytes | None = None) -> str:
    named = ["-c", "user.name=Someone", "-c", "user.email=someone@example.org"]
    done = subprocess.run(["git", *named, *words], cwd=folder, input=stdin, capture_output=True, check=True)
    return done.stdout.decode()


def begin(folder: Path, *options: str) -> Project:
    """Make a repository with a commit, and let covey look after it."""
    subprocess.run(["git", "init", "-q", "-b", "main", *options, str(folder)], check=True)
    if "--bare" not in options:
        (folder / "README").write_text("Hello\n")
        git(folder, "add", "README")
        git(folder, "commit", "-q", "-m", "Begin")
    project = projects.find(folder)
    project.state.mkdir()
    project.owner_token.write_text("a-token-of-the-owner-for-this-test")
    stories.Project(project.database).close()
    return project


def tell(project: Project, *steps: tuple[str, int]) -> None:
    """Let something happen in a project."""
    told = stories.Project(project.database)
    told.ask("task.add", title="A title", body=SECRET_BODY)
    told.ask("mail.send", to="owner", subject="A subject", text=SECRET_MAIL)
    told.ask("task.add", title="With a long body", body=LONG_BODY)
    Teller(told).tell(list(steps) or a_rich_story(5, 40))
    told.close()


def log_of(project: Project) -> str:
    with snapshot(project.database) as db:
        return str(db.rows("SELECT id FROM log")[0][0])


def ref_of(project: Project) -> str:
    return identity.LOG_REFS + log_of(project)


def table(project: Project, name: str) -> list[tuple[Any, ...]]:
    with snapshot(project.database) as db:
        return db.rows(f"SELECT * FROM {name}")


@pytest.fixture
def project(tmp_path: Path) -> Project:
    """Return a project in which something happened."""
    made = begin(tmp_path / "ours")
    tell(made)
    return made


@pytest.fixture
def ask(capsys: pytest.CaptureFixture[str]) -> Callable[..., Any]:
    """Return a way to run a command of the log's care and get its JSON."""

    def ask(project: Project, word: str, *words: str) -> Any:
        capsys.readouterr()
        code = run(word, [*words, "--json"], project.root)
        assert code == 0
        return json.loads(capsys.readouterr().out)

    return ask


def run(word: str, argv: list[str], folder: Path) -> int:
    """Run a command of the log's care in a folder."""
    return dispatch(["-C", str(folder), "log", word, *argv])


Ask = Callable[..., Any]
ALL = ("--with", "mail", "--with", "prompts")


# Export


def test_an_export_is_a_commit_that_git_alone_can_read(project: Project, ask: Ask) -> None:
    made = ask(project, "export")
    ref = made["ref"]
    assert ref == ref_of(project)
    said = git(project.root, "log", "--format=%an <%ae>%n%B", ref)
    assert said.startswith(f"covey <covey@localhost>\nLog of ours: events 1 to {made['seq']}\n")
    assert "Left out: mail, prompts." in said
    meta = json.loads(git(project.root, "show", f"{ref}:meta.json"))
    assert (meta["format"], meta["log"], meta["seq"], meta["included"]) == (1, log_of(project), made["seq"], [])
    lines = git(project.root, "show", f"{ref}:events/0000000001.jsonl").splitlines()
    assert [json.loads(line)["seq"] for line in lines] == list(range(1, made["seq"] + 1))
    assert set(json.loads(lines[0])) == {"seq", "time", "actor", "kind", "subject", "data", "key", "prev", "hash"}


def test_an_export_touches_nothing_of_the_users(project: Project, ask: Ask) -> None:
    (project.root / "README").write_text("Changed\n")
    git(project.root, "add", "README")
    (project.root / "new").write_text("new")
    before = {path: path.read_bytes() for path in project.common.iterdir() if path.is_file()}
    status = git(project.root, "status", "--porcelain", "--branch")
    ask(project, "export", *ALL)
    assert {path: path.read_bytes() for path in project.common.iterdir() if path.is_file()} == before
    assert git(project.root, "status", "--porcelain", "--branch") == status
    assert git(project.root, "for-each-ref", "--format=%(refname)").split() == [ref_of(project), "refs/heads/main"]


def everything_in(project: Project) -> str:
    listing = git(project.root, "ls-tree", "-r", ref_of(project))
    return "\n".join(git(project.root, "cat-file", "blob", line.split()[2]) for line in listing.splitlines())


def test_mail_and_prompts_stay_at_home_unless_asked_for(project: Project, ask: Ask) -> None:
    ask(project, "export")
    content = everything_in(project)
    assert SECRET_BODY not in content
    assert SECRET_MAIL not in content
    assert "A subject" not in content
    assert LONG_BODY not in content
    assert "A title" in content
    lines = [json.loads(line) for line in content.splitlines() if line.startswith('{"seq"')]
    withheld = [(line["kind"], line["withheld"]) for line in lines if "withheld" in line]
    assert withheld[:2] == [("task.added", ["body"]), ("mail.sent", ["subject", "text"])]
    assert any(line["kind"] == "log.begun" and "withheld" not in line for line in lines)
    commit = log_refs.exported(project)[log_of(project)]
    assert log_refs.check(project, log_of(project), commit, 0, bytes(32)) == len(lines)


def test_comments_and_answers_stay_at_home_like_the_mail_that_brings_them(project: Project, ask: Ask) -> None:
    told = stories.Project(project.database)
    comment = told.ask("comment.write", task="T-1", text="Draft: not for everybody")
    told.ask("comment.edit", {"id": comment["id"]}, text="Comment: not for everybody")
    asked = told.ask("question.ask", session="ada", text="Which one?")
    told.ask("question.answer", {"id": asked["id"]}, decision="reply", text="Answer: not for everybody")
    told.close()
    ask(project, "export")
    content = everything_in(project)
    assert "comment.edited" in content and "question.answered" in content
    assert "not for " not in content
    git(project.root, "update-ref", "-d", ref_of(project))
    ask(project, "export", *ALL)
    assert everything_in(project).count("not for ") == 3


def test_mail_and_prompts_are_included_when_asked_for(project: Project, ask: Ask) -> None:
    ask(project, "export", *ALL)
    content = everything_in(project)
    assert all(text in content for text in (SECRET_BODY, SECRET_MAIL, "A subject", LONG_BODY))
    assert '"withheld"' not in content
    names = git(project.root, "ls-tree", "--name-only", f"{ref_of(project)}:blobs").split()
    assert names == sorted(str(row[0]) for row in table(project, "blobs"))


def test_what_is_included_cannot_change_within_an_export(project: Project, ask: Ask) -> None:
    first = ask(project, "export")
    tell(project)
    with pytest.raises(Refused, match="includes neither mail nor prompts") as refused:
        ask(project, "export", "--with", "mail")
    assert f"git update-ref -d {first['ref']}" in refused.value.hint
    assert git(project.root, "rev-parse", first["ref"]).strip() == first["commit"]
    git(project.root, "update-ref", "-d", first["ref"])
    assert ask(project, "export", "--with", "mail")["included"] == ["mail"]


def test_nothing_new_makes_no_commit(project: Project, ask: Ask) -> None:
    first = ask(project, "export")
    again = ask(project, "export")
    assert (again["commit"], again["events"]) == (first["commit"], 0)


def test_finished_segments_are_used_again_and_only_the_last_is_written(
    project: Project, ask: Ask, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(log_refs, "SEGMENT_EVENTS", 16)
    first = ask(project, "export", *ALL)
    before = segments(project)
    tell(project)
    second = ask(project, "export", *ALL)
    after = segments(project)
    finished = first["seq"] // 16
    assert list(after)[:finished] == list(before)[:finished]
    assert [after[name] for name in list(after)[:finished]] == [before[name] for name in list(before)[:finished]]
    assert len(after) == -(-second["seq"] // 16)
    assert second["events"] == second["seq"] - first["seq"]
    assert git(project.root, "rev-parse", f"{second['ref']}^").strip() == first["commit"]
    whole = list(log_refs.read_lines(project, log_of(project), second["commit"], 0))
    assert [line.event.seq for line in whole] == list(range(1, second["seq"] + 1))
    assert log_refs.check(project, log_of(project), second["commit"], 0, bytes(32)) == second["seq"]


def test_an_export_that_ends_with_its_segment_goes_on_in_the_next(
    project: Project, ask: Ask, monkeypatch: pytest.MonkeyPatch
) -> None:
    seq = len(table(project, "events"))
    monkeypatch.setattr(log_refs, "SEGMENT_EVENTS", seq)
    assert len(segments(project, ask(project, "export")["ref"])) == 1
    tell(project)
    made = ask(project, "export")
    assert list(segments(project)) == [f"{first:010}.jsonl" for first in range(1, made["seq"] + 1, seq)]
    assert log_refs.check(project, log_of(project), made["commit"], 0, bytes(32)) == made["seq"]


def segments(project: Project, ref: str | None = None) -> dict[str, str]:
    listing = git(project.root, "ls-tree", f"{ref or ref_of(project)}:events").splitlines()
    return {line.split("\t")[1]: line.split()[2] for line in listing}


@pytest.mark.parametrize("options", [["--bare"], ["--object-format=sha256"]])
def test_a_log_is_exported_in_unusual_repositories(tmp_path: Path, ask: Ask, options: list[str]) -> None:
    made = begin(tmp_path / "unusual", *options)
    tell(made)
    assert ask(made, "export")["events"] > 3
    tell(made)
    assert ask(made, "export")["events"] > 3
    assert len(git(made.root, "log", "--format=%h", ref_of(made)).split()) == 2


def test_a_log_is_exported_from_a_linked_worktree(project: Project, ask: Ask, tmp_path: Path) -> None:
    linked = tmp_path / "linked"
    git(project.root, "worktree", "add", "-q", str(linked))
    assert run("export", [], linked) == 0
    assert ref_of(project) in git(project.root, "for-each-ref")


def test_a_log_that_was_set_back_is_not_exported_over_its_own_future(
    project: Project, ask: Ask, tmp_path: Path
) -> None:
    backup(project.database, tmp_path / "old.db")
    tell(project)
    made = ask(project, "export")
    project.database.write_bytes((tmp_path / "old.db").read_bytes())
    for name in ("covey.db-wal", "covey.db-shm"):
        (project.state / name).unlink(missing_ok=True)
    with pytest.raises(Refused, match="is not of this log: it has"):
        ask(project, "export")
    tell(project, *a_rich_story(6, 160))
    with pytest.raises(Refused, match="is a fork of this log at event") as refused:
        ask(project, "export")
    assert git(project.root, "rev-parse", made["ref"]).strip() == made["commit"]
    keep, remove = re.findall(r"git (update-ref [^;,]*?)(?: keeps| makes)", refused.value.hint)
    git(project.root, *keep.split())
    git(project.root, *remove.split())
    assert ask(project, "export")["events"] == len(table(project, "events"))
    assert git(project.root, "rev-parse", keep.split()[1]).strip() == made["commit"]


def test_a_damaged_log_is_not_exported(project: Project, ask: Ask) -> None:
    with apsw.Connection(str(project.database)) as db:
        db.execute("UPDATE events SET actor = 'mallory' WHERE seq = 5")
    with pytest.raises(Refused, match="is damaged at event 6"):
        ask(project, "export")
    assert log_refs.exported(project) == {}


def test_many_thousand_events_make_segments_of_ten_thousand(tmp_path: Path, ask: Ask) -> None:
    made = begin(tmp_path / "ours")
    told = stories.Project(made.database)
    lives(told, 1500)
    told.close()
    answer = ask(made, "export", *ALL)
    assert answer["seq"] > 10_000
    assert list(segments(made))[:2] == ["0000000001.jsonl", "0000010001.jsonl"]
    other = begin(tmp_path / "theirs")
    ask(other, "import", "--from", str(made.root))
    assert len(table(other, "origin_events")) == answer["seq"]


# Import


@pytest.fixture
def other(tmp_path: Path) -> Project:
    """Return another project, with another log, in which something happened too."""
    made = begin(tmp_path / "theirs")
    tell(made, *a_rich_story(9, 30))
    return made


def test_the_log_of_another_origin_is_taken_in_beside_our_own(project: Project, other: Project, ask: Ask) -> None:
    made = ask(project, "export", *ALL)
    own = table(other, "events")
    (origin,) = ask(other, "import", "--from", "../ours")["origins"]
    assert (origin["log"], origin["seq"], origin["events"]) == (log_of(project), made["seq"], made["seq"])
    mine = [row[1:-2] for row in table(other, "origin_events")]
    assert mine == table(project, "events")
    assert table(other, "events")[: len(own)] == own
    (news,) = (row for row in table(other, "events") if row[3] == "log.imported")
    assert news[3:6] == ("log.imported", log_of(project), f'{{"log":"{log_of(project)}","events":{made["seq"]}}}')
    assert audit.verify(other.database).problems == []
    listed = stories.Project(other.database)
    verb = VERBS["log.list"]
    query = read_query(verb, [("origin", log_of(project))])
    job = listed.app.job(Request(verb, Principal(), query, {}))
    assert [event["seq"] for event in listed.store.read(job).value()] == list(range(1, made["seq"] + 1))
    listed.close()


def test_a_second_import_takes_only_what_is_new(project: Project, other: Project, ask: Ask) -> None:
    first = ask(project, "export")
    ask(other, "import", "--from", str(project.root))
    seq = len(table(other, "events"))
    assert ask(other, "import", "--from", str(project.root))["origins"][0]["events"] == 0
    assert len(table(other, "events")) == seq
    tell(project)
    second = ask(project, "export")
    (origin,) = ask(other, "import", "--from", str(project.root))["origins"]
    assert origin["events"] == second["seq"] - first["seq"]
    assert len(table(other, "origin_events")) == second["seq"]
    assert len(table(other, "events")) == seq + 1


def test_origins_are_never_mixed(project: Project, other: Project, ask: Ask, tmp_path: Path) -> None:
    third = begin(tmp_path / "third")
    tell(third)
    for origin in (project, other):
        ask(origin, "export")
        ask(third, "import", "--from", str(origin.root))
    found = table(third, "origin_events")
    for origin in (project, other):
        mine = [row for row in found if row[0] == log_of(origin)]
        assert [row[1] for row in mine] == [row[0] for row in table(origin, "events")]
    assert sorted(row[0] for row in table(third, "origins")) == sorted([log_of(project), log_of(other)])


Spoil = Callable[[list[bytes]], list[bytes]]


def spoil(project: Project, change: Spoil, *, parent: bool = True) -> None:
    """Write an export again with other lines, as somebody with git and bad intentions would."""
    ref, log = ref_of(project), log_of(project)
    commit = log_refs.exported(project)[log]
    lines = change(git(project.root, "show", f"{commit}:events/0000000001.jsonl").encode().splitlines())
    meta = json.loads(git(project.root, "show", f"{commit}:meta.json"))
    last = json.loads(lines[-1])
    meta |= {"seq": last["seq"], "head": last["hash"]}
    write = ("hash-object", "-w", "--stdin")
    events = git(project.root, *write, stdin=b"\n".join(lines) + b"\n").strip()
    about = git(project.root, *write, stdin=json.dumps(meta).encode()).strip()
    tree = git(project.root, "mktree", stdin=f"100644 blob {events}\t0000000001.jsonl\n".encode()).strip()
    top = f"040000 tree {tree}\tevents\n100644 blob {about}\tmeta.json\n"
    tree = git(project.root, "mktree", stdin=top.encode()).strip()
    made = git(project.root, "commit-tree", tree, *(["-p", commit] if parent else []), "-m", "Spoiled").strip()
    git(project.root, "update-ref", ref, made)


def replaced(old: bytes, new: bytes, at: int) -> Spoil:
    """Return a change of one line."""

    def change(lines: list[bytes]) -> list[bytes]:
        assert old in lines[at]
        lines[at] = lines[at].replace(old, new, 1)
        return lines

    return change


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (replaced(b'"actor":"owner"', b'"actor":"other"', 1), "was altered"),
        (replaced(b"A title", b"B title", 1), "was altered"),
        (replaced(b'"data":{', b'"data":{ ', 1), "was altered"),
        (replaced(b'"data":{', b'"data":{{', 1), "is not an event"),
        (replaced(b'"seq":2', b'"seq":"2"', 1), "is not an event"),
        (replaced(b'"log"', b'"gol"', 0), "was altered|not its beginning"),
        (lambda lines: [*lines[:4], *lines[5:]], "has a gap"),
        (lambda lines: [*lines[:4], lines[5], lines[4], *lines[6:]], "has a gap"),
        (lambda lines: lines[1:], "has a gap"),
    ],
)
def test_an_export_that_was_tampered_with_is_refused_whole(
    project: Project, other: Project, ask: Ask, change: Spoil, said: str
) -> None:
    ask(project, "export", *ALL)
    spoil(project, change)
    before = {name: table(other, name) for name in ("events", "origins", "origin_events")}
    with pytest.raises(Refused, match=said):
        ask(other, "import", "--from", str(project.root))
    assert {name: table(other, name) for name in before} == before


def test_a_fork_of_a_known_log_is_refused(project: Project, other: Project, ask: Ask, tmp_path: Path) -> None:
    ask(project, "export")
    ask(other, "import", "--from", str(project.root))
    before = {name: table(other, name) for name in ("events", "origins", "origin_events")}
    spoil(project, lambda lines: [*lines[:-1], lines[-1].replace(json.loads(lines[-1])["hash"].encode(), b"f" * 64)])
    with pytest.raises(Refused, match="is a fork"):
        ask(other, "import", "--from", str(project.root))
    assert {name: table(other, name) for name in before} == before


def test_a_ref_that_we_have_is_only_moved_forward(project: Project, other: Project, ask: Ask) -> None:
    made = ask(project, "export")
    ask(other, "import", "--from", str(project.root))
    spoil(project, lambda lines: lines, parent=False)
    with pytest.raises(Refused, match="not a continuation"):
        ask(other, "import", "--from", str(project.root))
    assert log_refs.exported(other)[log_of(project)] == made["commit"]
    assert "incoming" not in git(other.root, "for-each-ref")


def test_the_ref_of_our_own_log_is_never_overwritten_by_an_import(project: Project, other: Project, ask: Ask) -> None:
    made = ask(other, "export")
    git(project.root, "update-ref", ref_of(other), "HEAD")
    ask(other, "import", "--from", str(project.root))
    assert log_refs.exported(other) == {log_of(other): made["commit"]}
    assert table(other, "origins") == []


def test_a_place_without_a_repository_is_one_sentence(project: Project, ask: Ask) -> None:
    with pytest.raises(ToolFailed) as failed:
        ask(project, "import", "--from", "nowhere")
    assert failed.value.message == "git fetch failed: 'nowhere' does not appear to be a git repository."
    with pytest.raises(ToolFailed):
        ask(project, "import", "--from", "--upload-pack=touch /tmp/owned")


def test_a_ref_that_is_no_export_is_refused(project: Project, ask: Ask) -> None:
    git(project.root, "update-ref", identity.LOG_REFS + "0" * 32, "HEAD")
    with pytest.raises(Refused, match=r"lacks meta\.json"):
        ask(project, "import")


def covey(project: Project, *words: str) -> subprocess.CompletedProcess[str]:
    """Run the command as people do."""
    command = [sys.executable, "-m", "covey", "-C", str(project.root), "log", *words]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_an_import_through_the_daemon_is_the_same(project: Project, other: Project, ask: Ask) -> None:
    made = ask(project, "export")
    daemon = Daemon(other).start()
    try:
        assert covey(other, "import", "--from", str(project.root)).returncode == 0
        for words in (["adopt", log_of(project)], ["rebuild"]):
            refused = covey(other, *words)
            assert refused.returncode == Refused.exit_code
            assert "covey down" in refused.stderr
        assert covey(other, "verify").returncode == 0
        assert covey(other, "prune").returncode == 0
        assert json.loads(covey(other, "prune", "--json").stdout)["blobs"] == 0, "it was all removed before"
    finally:
        daemon.stop()
    assert len(table(other, "origin_events")) == made["seq"]
    assert [row[3] for row in table(other, "events")].count("log.imported") == 1


# The verb


def import_part(project: Project, lines: list[Line], **more: Any) -> Any:
    from covey.cli.history.log_care import _fields

    told = stories.Project(project.database)
    try:
        return told.ask("log.import", **({"log": more.pop("log"), "events": [_fields(line) for line in lines]} | more))
    finally:
        told.close()


def test_an_import_that_broke_off_is_told_whole_when_it_is_finished(project: Project, other: Project, ask: Ask) -> None:
    made = ask(project, "export")
    log = log_of(project)
    lines = list(log_refs.read_lines(project, log, made["commit"], 0))
    import_part(other, lines[:10], log=log, more=True)
    assert "log.imported" not in {row[3] for row in table(other, "events")}
    assert import_part(other, lines[10:], log=log)["events"] == len(lines)
    assert table(other, "events")[-1][3:5] == ("log.imported", log)
    with pytest.raises(Refused, match="has a gap"):
        import_part(other, lines[-1:], log=log)
    with pytest.raises(Refused, match="own log"):
        import_part(other, lines, log=log_of(other))
    with pytest.raises(Invalid, match="begins with its events"):
        import_part(other, [], log="0" * 32)


def test_an_export_that_is_not_whole_makes_nobody_forget_what_is_known(
    project: Project, other: Project, ask: Ask
) -> None:
    ask(project, "export", *ALL)
    ask(other, "import", "--from", str(project.root))
    spoil(project, replaced(b"A title", b"B title", 1))
    before = {name: table(other, name) for name in ("events", "origins", "origin_events")}
    with pytest.raises(Refused, match="was altered"):
        ask(other, "import", "--again", "--from", str(project.root))
    assert {name: table(other, name) for name in before} == before


def test_only_an_imported_log_is_forgotten(project: Project, other: Project, ask: Ask) -> None:
    ask(project, "export")
    ask(other, "import", "--from", str(project.root))
    told = stories.Project(other.database)
    with pytest.raises(Refused, match="own log"):
        told.ask("log.forget", log=log_of(other))
    with pytest.raises(NotFound, match="no imported log"):
        told.ask("log.forget", log="0" * 32)
    known = len(table(other, "origin_events"))
    assert told.ask("log.forget", log=log_of(project)) == {"log": log_of(project), "events": known}
    told.close()
    assert table(other, "origins") == table(other, "origin_events") == []
    assert audit.verify(other.database).problems == []
    assert ask(other, "import")["origins"][0]["events"] == known
    assert table(other, "events")[-1][3] == "log.imported"


@pytest.mark.parametrize(
    ("statement", "said"),
    [
        ("UPDATE origin_events SET actor = 'mallory' WHERE seq = 4", "Event 4 of the log {log} was altered"),
        ("UPDATE origin_events SET prev = zeroblob(32) WHERE seq = 4", "is a fork: its event 4 does not follow"),
        ("UPDATE origin_events SET data = CAST(x'ff' AS TEXT) WHERE seq = 4", "{log}: event 4 cannot be read"),
        ("DELETE FROM origin_events WHERE seq = 4", "has a gap: after event 3 comes 5"),
        ("DELETE FROM origin_events WHERE seq = (SELECT max(seq) FROM origin_events)", "does not end with the event"),
        ("UPDATE origins SET hash = zeroblob(32)", "does not end with the event"),
        ("DELETE FROM origin_events", "does not end with the event"),
        ("DELETE FROM origins", "is not among the imported ones"),
    ],
)
def test_an_imported_log_that_was_altered_is_found(
    project: Project, other: Project, ask: Ask, statement: str, said: str
) -> None:
    ask(project, "export", *ALL)
    ask(other, "import", "--from", str(project.root))
    with apsw.Connection(str(other.database)) as db:
        db.execute(statement)
    problems = audit.verify(other.database).problems
    assert any(said.format(log=log_of(project)) in problem for problem in problems), problems


def test_an_imported_log_from_which_something_was_left_out_is_sound(project: Project, other: Project, ask: Ask) -> None:
    ask(project, "export")
    ask(other, "import", "--from", str(project.root))
    assert audit.verify(other.database).problems == []


def test_a_fork_with_hashes_of_its_own_is_refused(project: Project, other: Project, ask: Ask) -> None:
    made = ask(project, "export", *ALL)
    log = log_of(project)
    lines = list(log_refs.read_lines(project, log, made["commit"], 0))
    import_part(other, lines[:10], log=log)
    event = replace(lines[10].event, prev=bytes(32))
    with pytest.raises(Refused, match="is a fork: its event 11 does not follow the event 10"):
        import_part(other, [Line(event, digest(event))], log=log)
    assert len(table(other, "origin_events")) == 10


# Adopt


def test_a_lost_disk_is_recovered_from_an_export(project: Project, tmp_path: Path, ask: Ask) -> None:
    git(tmp_path, "init", "-q", "--bare", "hub.git")
    made = ask(project, "export", *ALL)
    git(project.root, "push", "-q", str(tmp_path / "hub.git"), "main", "refs/covey/log/*")
    live = {name: table(project, name) for name in rows.tables()}
    log, texts = log_of(project), sorted(row[2] for row in table(project, "blobs"))
    git(tmp_path, "clone", "-q", "hub.git", "again")
    fresh = projects.find(tmp_path / "again")
    fresh.state.mkdir()
    fresh.owner_token.write_text("a-token-of-the-owner-for-this-test")
    stories.Project(fresh.database).close()
    with apsw.Connection(str(fresh.database)) as db:
        db.execute("INSERT INTO pulses VALUES ('session:ada', 1.0, 1.0, 'another boot')")
    ask(fresh, "import", "--from", "origin")
    assert ask(fresh, "adopt", log) == {"log": log, "events": made["seq"]}
    assert ask(fresh, "verify")["sound"]
    assert {name: table(fresh, name) for name in rows.tables()} == live
    assert sorted(row[2] for row in table(fresh, "blobs")) == texts
    assert table(fresh, "origins") == table(fresh, "origin_events") == table(fresh, "pulses") == []
    tell(fresh)
    assert ask(fresh, "export", *ALL)["seq"] > made["seq"]
    assert git(fresh.root, "rev-parse", f"{ref_of(fresh)}^").strip() == made["commit"]
    with pytest.raises(Refused, match="own log already"):
        ask(fresh, "adopt", log)


def test_a_log_from_which_something_was_left_out_is_not_adopted(project: Project, tmp_path: Path, ask: Ask) -> None:
    ask(project, "export", "--with", "mail")
    fresh = begin(tmp_path / "fresh")
    ask(fresh, "import", "--from", str(project.root))
    before = table(fresh, "events")
    with pytest.raises(Refused, match="Something was left out") as refused:
        ask(fresh, "adopt", log_of(project))
    assert table(fresh, "events") == before
    assert "covey log import --again --from REMOTE" in refused.value.hint
    git(project.root, "update-ref", "-d", ref_of(project))
    made = ask(project, "export", *ALL)
    with pytest.raises(Refused, match="not a continuation") as refused:
        ask(fresh, "import", "--from", str(project.root))
    assert "covey log import --again --from REMOTE" in refused.value.hint
    (origin,) = ask(fresh, "import", "--again", "--from", str(project.root))["origins"]
    assert (origin["events"], origin["seq"]) == (made["seq"], made["seq"])
    assert [row[3] for row in table(fresh, "events")][-3:] == ["log.imported", "log.forgotten", "log.imported"]
    assert ask(fresh, "adopt", log_of(project))["events"] == made["seq"]
    assert ask(fresh, "verify")["sound"]


def test_a_project_with_a_history_adopts_no_other(project: Project, other: Project, ask: Ask) -> None:
    ask(project, "export", *ALL)
    ask(other, "import", "--from", str(project.root))
    with pytest.raises(Refused, match="history of its own"):
        ask(other, "adopt", log_of(project))
    with pytest.raises(NotFound, match="no imported log"):
        ask(other, "adopt", "0" * 32)
    assert ask(other, "verify")["sound"]


def test_a_log_without_the_long_texts_of_open_tasks_is_not_adopted(tmp_path: Path, ask: Ask) -> None:
    project = begin(tmp_path / "ours")
    tell(project, ("session.new", 1))
    ask(project, "export", *ALL)
    fresh = begin(tmp_path / "fresh")
    ask(fresh, "import", "--from", str(project.root))
    git(fresh.root, "update-ref", "-d", ref_of(project))
    with pytest.raises(Refused, match="is not whole: blobs"):
        ask(fresh, "adopt", log_of(project))
    assert ask(fresh, "verify")["sound"]
    assert len(table(fresh, "origins")) == 1


# The other commands


@pytest.fixture
def held(project: Project) -> Iterator[Project]:
    """Yield a project whose lock somebody holds."""
    with WriterLock(project.lock):
        yield project


def test_verify_prints_the_problems_and_fails(project: Project, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("verify", [], project.root) == 0
    assert "the log and every row agree" in capsys.readouterr().out
    with apsw.Connection(str(project.database)) as db:
        db.execute("UPDATE tasks SET title = 'Other'")
    assert run("verify", [], project.root) == 1
    out = capsys.readouterr().out
    assert "tasks T-1: title is 'Other', but the log says 'A title'." in out
    assert "problems." in out.splitlines()[-1]
    assert run("verify", ["--json"], project.root) == 1
    said = json.loads(capsys.readouterr().out)
    assert said["sound"] is False
    assert said["count"] >= len(said["problems"]) > 0


def test_rebuild_mends_and_says_so(project: Project, capsys: pytest.CaptureFixture[str], ask: Ask) -> None:
    with apsw.Connection(str(project.database)) as db:
        db.execute("UPDATE tasks SET priority = priority + 1 WHERE id = 'T-1'")
    assert run("rebuild", [], project.root) == 0
    assert "1 difference mended" in capsys.readouterr().out
    assert ask(project, "rebuild")["differences"] == 0
    assert ask(project, "verify")["sound"]


def test_verify_export_and_backup_need_no_lock_and_rebuild_and_adopt_do(
    held: Project, ask: Ask, tmp_path: Path
) -> None:
    assert ask(held, "verify")["sound"]
    assert ask(held, "export")["events"] > 0
    seq = ask(held, "backup", str(tmp_path / "copy.db"))["seq"]
    assert seq == len(table(held, "events"))
    assert ask(held, "verify", str(tmp_path / "copy.db"))["events"] == seq
    for words in (["rebuild"], ["adopt", "0" * 32]):
        with pytest.raises(Refused, match="is writing") as refused:
            ask(held, *words)
        assert "covey down" in refused.value.hint


def test_a_backup_is_for_its_owner_alone_and_is_named_plainly(project: Project, ask: Ask, tmp_path: Path) -> None:
    made = ask(project, "backup", "../copy.db")
    assert made["file"] == str((tmp_path / "copy.db").resolve())
    assert (tmp_path / "copy.db").stat().st_mode & 0o777 == 0o600


def test_prune_goes_on_until_nothing_is_left(project: Project, ask: Ask, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pruning, "_AT_ONCE", 1)
    (project.root / "covey.toml").write_text("[log]\nkeep_days = 1\nkeep_megabytes = 0\n")
    told = stories.Project(project.database)
    for number in range(3):
        task = told.ask("task.add", title="Dropped", body=f"{LONG}{number}")
        told.ask("task.drop", {"id": task["id"]}, reason="Not now")
    told.close()
    assert ask(project, "prune")["blobs"] >= 3
    assert ask(project, "prune") == {"blobs": 0, "size": 0}
    assert ask(project, "verify")["sound"]


def test_a_folder_that_covey_does_not_look_after_is_one_sentence(tmp_path: Path) -> None:
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    for word in ("verify", "rebuild", "export", "import", "prune"):
        with pytest.raises(CoveyError, match="does not look after"):
            run(word, [], tmp_path)
