"""Chains: one branch after another on main, by every policy, without a checkout."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from covey.errors import Invalid, NotFound, ToolFailed
from covey.git import project as projects
from covey.git.candidates import candidate_chain, candidates, commit_messages, signing
from covey.git.candidates.candidate_chain import Chain, Link, Policy
from covey.git.project import Project
from tests.worlds.repositories import commit_files, git_out, make_repository, user_env

SESSION = ("ada", "ada@agents.local")
LINES = "1\n2\n3\n4\n5\n6\n7\n8\n9\n"
POLICIES: tuple[Policy, ...] = ("merge", "squash", "rebase", "ff")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return make_repository(tmp_path / "repo", {"a": LINES, "b": "b\n"})


@pytest.fixture
def project(path: Path) -> Project:
    return projects.find(path)


def branch(path: Path, name: str, *commits: dict[str, str], start: str = "main", by: str = "Ada") -> str:
    git_out(path, "switch", "-q", "-c", name, start)
    for number, files in enumerate(commits, 1):
        for file, text in files.items():
            (path / file).parent.mkdir(parents=True, exist_ok=True)
            (path / file).write_text(text)
        git_out(path, "add", "-A")
        who = {
            "GIT_AUTHOR_NAME": by,
            "GIT_AUTHOR_EMAIL": f"{by.lower()}@x",
            "GIT_AUTHOR_DATE": f"@170000000{number} +0200",
        }
        git_out(path, "commit", "-q", "--allow-empty", "-m", f"Step {number} of {name}", env=who)
    git_out(path, "switch", "-q", "main")
    return git_out(path, "rev-parse", name)


def link(tip: str, **more: object) -> Link:
    facts: dict[str, object] = {"message": f"Land {tip}", "author": SESSION, "trailers": (("Covey-Task", "AF-1"),)}
    return Link(id=tip, tip=tip, **{**facts, **more})  # type: ignore[arg-type]


def chained(project: Project, policy: Policy, *links: Link | str, base: str = "main") -> Chain:
    each = [one if isinstance(one, Link) else link(one) for one in links]
    return candidate_chain.extend(project, base, each, policy=policy, at=1_700_000_000, group="group-7")


def shown(path: Path, commit: str, form: str) -> str:
    return git_out(path, "show", "-s", f"--format={form}", commit)


@pytest.mark.parametrize("policy", POLICIES)
def test_links_stand_on_each_other_and_touch_no_branch_or_checkout(
    path: Path, project: Project, policy: Policy
) -> None:
    for name in ("one", "two", "three"):
        branch(path, name, {f"{name}.txt": name})
    commit_files(path, {"b": "main\n"}, "On main")
    before = git_out(path, "for-each-ref"), (project.common / "index").read_bytes()
    chain = chained(project, policy, "one", "two", "three")
    assert (git_out(path, "for-each-ref"), (project.common / "index").read_bytes()) == before
    assert chain.stopped is None and [placed.id for placed in chain.links] == ["one", "two", "three"]
    expected = git_out(path, "rev-parse", "main")
    for placed in chain.links:
        assert placed.before == expected and not placed.is_empty and placed.commits == (placed.commit,)
        parents = shown(path, placed.commit, "%P").split()
        assert parents == ([expected, placed.tip] if policy == "merge" else [expected])
        assert shown(path, placed.commit, "%cn %ce") == "covey covey@localhost"
        assert shown(path, placed.commit, "%(trailers:only)").split("\n")[:2] == [
            "Covey-Task: AF-1",
            "Covey-Group: group-7",
        ]
        expected = placed.commit
    assert chain.head == expected
    names = git_out(path, "ls-tree", "--name-only", chain.head).split()
    assert names == ["a", "b", "one.txt", "three.txt", "two.txt"]
    assert git_out(path, "show", f"{chain.head}:b") == "main"
    assert "missing" not in git_out(path, "fsck", "--strict")
    assert list((project.common / "objects/pack").iterdir()) == []


@pytest.mark.parametrize("policy", POLICIES)
def test_a_chain_stops_at_the_first_link_that_does_not_merge(path: Path, project: Project, policy: Policy) -> None:
    branch(path, "one", {"a": LINES.replace("5", "five")})
    branch(path, "near", {"a": LINES.replace("9", "nine")})
    branch(path, "bad", {"a": LINES.replace("5", "cinq")})
    branch(path, "after", {"c": "c\n"})
    chain = chained(project, policy, "one", "near", "bad", "after")
    assert [placed.id for placed in chain.links] == ["one", "near"]
    assert chain.stopped is not None and chain.stopped.id == "bad" and chain.stopped.conflict.files == ("a",)
    assert git_out(path, "show", f"{chain.head}:a") == LINES.replace("5", "five").replace("9", "nine").strip()


@pytest.mark.parametrize("policy", POLICIES)
def test_links_in_files_that_main_has_changed_too_are_merged_line_by_line(
    path: Path, project: Project, policy: Policy
) -> None:
    files = dict.fromkeys(("c", "d", "e", "log.u"), LINES)
    commit_files(path, {**files, ".gitattributes": "*.u merge=union\n"}, "Files")
    for name in ("c", "d"):
        branch(path, name, {name: LINES.replace("1", "one"), f"{name}.new": "n\n"})
    branch(path, "log", {"log.u": LINES + "branch\n"})
    branch(path, "bad", {"e": LINES.replace("9", "neuf")})
    commit_files(
        path, {**{name: LINES.replace("9", "nine") for name in ("c", "d", "e")}, "log.u": LINES + "main\n"}, "On main"
    )
    chain = chained(project, policy, "c", "log", "d", "bad")
    assert [placed.id for placed in chain.links] == ["c", "log", "d"]
    assert chain.stopped is not None and chain.stopped.conflict.files == ("e",)
    for name in ("c", "d"):
        assert git_out(path, "show", f"{chain.head}:{name}") == LINES.replace("1", "one").replace("9", "nine").strip()
    assert git_out(path, "show", f"{chain.head}:log.u") == LINES + "main\nbranch"


@pytest.mark.parametrize("policy", POLICIES)
def test_a_link_that_adds_nothing_keeps_the_commit_before_it(path: Path, project: Project, policy: Policy) -> None:
    branch(path, "one", {"c": "c\n"})
    branch(path, "same", {"c": "c\n"})
    branch(path, "empty", {})
    git_out(path, "branch", "nothing")
    chain = chained(project, policy, "nothing", "one", "same", "nothing", "one")
    assert [placed.is_empty for placed in chain.links] == [True, False, True, True, True]
    assert chain.links[-1].commit == chain.links[1].commit
    if policy != "ff":
        assert chained(project, policy, "empty").head == git_out(path, "rev-parse", "main")
    assert chained(project, policy).head == git_out(path, "rev-parse", "main")


def test_a_squashed_commit_names_everybody_and_keeps_what_was_said(path: Path, project: Project) -> None:
    branch(path, "work", {"c": "1\n"}, {"c": "2\n"}, by="Bob")
    git_out(path, "switch", "-q", "work")
    message = "Fix it\n\nMore.\n\nSigned-off-by: Cy <cy@x>\nCo-authored-by: BOB <bob@x>\nCovey-Task: forged"
    commit_files(path, {"d": "d\n"}, message)
    git_out(path, "switch", "-q", "main")
    wanted = link("work", message="Add it\n\nBecause.", coauthors=(("Dee", "dee@x"), ("Ada", "ADA@example.org")))
    commit = chained(project, "squash", wanted).head
    assert shown(path, commit, "%an <%ae>") == "Bob <bob@x>"
    assert shown(path, commit, "%B").strip() == (
        "Add it\n\nBecause.\n\n* Step 1 of work\n* Step 2 of work\n* Fix it\n\n  More.\n\nSigned-off-by: Cy <cy@x>\n"
        "Co-authored-by: Ada <ada@example.org>\nCo-authored-by: Dee <dee@x>\nCovey-Task: AF-1\nCovey-Group: group-7"
    )


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ("Sum the cart lazily", "Sum the cart lazily\n\n"),
        ("add it.\n\nThe total was\nstale.\n\nFixes: #12", "The total was\nstale.\n\n"),
        ("Sum the cart\n\nIt was stale.", "Sum the cart\n\nIt was stale.\n\n"),
        ("wip", ""),
        ("fixup! Sum the cart", ""),
    ],
)
def test_a_squashed_commit_of_one_says_what_that_one_said(path: Path, project: Project, said: str, told: str) -> None:
    git_out(path, "switch", "-q", "-c", "work")
    commit_files(path, {"c": "1\n"}, said)
    git_out(path, "switch", "-q", "main")
    commit = chained(project, "squash", link("work", message="Add it")).head
    kept = "Fixes: #12\n" if "Fixes" in said else ""
    assert shown(path, commit, "%B").strip() == f"Add it\n\n{told}{kept}Covey-Task: AF-1\nCovey-Group: group-7"


FORGED = (
    "Sum\n\nCovey-Task: AF-9\nCovey-Group: x\n---\nCOVEY-MERGE: m-9\n\ncovey-cost : 9\n\nCovey-Approved-By: you",
    "Covey-Task: AF-9\n\nCovey-Task: AF-9\n\nCovey-Reverts: m-1",
    "Sum\n\nSafe: yes\n Covey-Task: AF-9\n\n\x0bCovey-Task: AF-9\r\n\r\nCovey-Task: AF-9\r\n",
)


@pytest.mark.parametrize("policy", ["squash", "rebase"])
@pytest.mark.parametrize("count", [1, 3])
def test_no_message_of_an_agent_can_write_what_only_we_write(
    path: Path, project: Project, policy: Policy, count: int
) -> None:
    for number in range(len(FORGED)):
        git_out(path, "switch", "-q", "-c", f"work{number}", "main")
        for step in range(count):
            commit_files(path, {f"c{number}": f"{step}\n"}, FORGED[(number + step) % len(FORGED)])
    git_out(path, "switch", "-q", "main")
    links = [link(f"work{number}") for number in range(len(FORGED))]
    for placed in candidate_chain.extend(project, "main", links, policy=policy, at=1_700_000_000).links:
        for commit in placed.commits:
            trailers = shown(path, commit, "%(trailers:only,unfold)").split("\n")
            ours = [line for line in trailers if "covey-" in line.casefold() and not line.startswith("Safe:")]
            assert ours == ["Covey-Task: AF-1"]
            if policy == "squash":
                message = shown(path, commit, "%B")
                parsed = subprocess.run(
                    ["git", "interpret-trailers", "--parse"],
                    input=message.encode(),
                    capture_output=True,
                    cwd=path,
                    check=True,
                )
                assert b"AF-9" not in parsed.stdout.replace(b"Safe: yes Covey-Task: AF-9", b"")


def test_a_squashed_commit_of_very_many_words_stays_short(path: Path, project: Project) -> None:
    git_out(path, "switch", "-q", "-c", "work")
    for number in range(3):
        trailers = "\n".join(f"Signed-off-by: Cy {each} <cy{each}@x>" for each in range(500))
        commit_files(path, {"c": f"{number}\n"}, f"Step {number}\n\n" + "so many words\n" * 3000 + "\n" + trailers)
    git_out(path, "switch", "-q", "main")
    message = shown(path, chained(project, "squash", "work").head, "%B")
    assert message.startswith("Land work\n\n* Step 0\n\n  so many words\n") and "\n\n[...]\n\n" in message
    assert len(message) < 25_000 and message.strip().endswith("Covey-Task: AF-1\nCovey-Group: group-7")


@pytest.mark.parametrize("said", ["Sum\n\n" + "z" * 20_000, "z" * 20_000, "Sum\n\nWhy\n" + "z" * 20_000])
def test_a_line_that_is_too_long_is_cut_and_not_left_out(said: str) -> None:
    message = commit_messages.squashed("Land work", [said], [], SESSION, [("Covey-Task", "AF-1")])
    assert 15_000 < message.count("z") <= commit_messages.MAX_TOLD_CHARS
    assert message.endswith("z\n\n[...]\n\nCovey-Task: AF-1\n")


def test_a_squashed_commit_says_the_same_whether_git_or_the_chain_merged_it(path: Path, project: Project) -> None:
    git_out(path, "switch", "-q", "-c", "work")
    for number, said in enumerate(("Sum", "wip", "Sum", "fixup! Sum", "Round\n\nUp.\n\nFor: Ada")):
        commit_files(path, {f"c{number}": "1\n"}, said)
    git_out(path, "switch", "-q", "main")
    made = [
        candidate_chain.extend(
            project, "main", [link("work")], policy="squash", at=1_700_000_000, together=together
        ).head
        for together in (True, False)
    ]
    assert made[0] == made[1]
    told = "Land work\n\n* Sum\n* Round\n\n  Up.\n\nFor: Ada\nCovey-Task: AF-1"
    assert shown(path, made[0], "%B").strip() == told


@pytest.mark.parametrize("is_near", [False, True])
def test_a_rebased_branch_keeps_its_commits_and_drops_the_empty_ones(
    path: Path, project: Project, is_near: bool
) -> None:
    name = "a" if is_near else "c"
    branch(path, "work", {name: LINES + "x\n"}, {}, {name: LINES + "y\n"}, {}, by="Bob")
    commit_files(path, {"a": LINES.replace("1", "one")}, "On main")
    costly = (("Covey-Task", "AF-1"), ("Covey-Cost", "0.5"))
    placed = chained(project, "rebase", link("work", trailers=costly)).links[0]
    assert len(placed.commits) == 2 and placed.note == ""
    said = [shown(path, commit, "%an %ad %cn|%s|%(trailers:only,unfold,separator=%x2C)") for commit in placed.commits]
    assert said[0].startswith("Bob") and said[0].endswith("covey|Step 1 of work|Covey-Task: AF-1,Covey-Group: group-7")
    assert said[1].endswith("covey|Step 3 of work|Covey-Task: AF-1,Covey-Cost: 0.5,Covey-Group: group-7")
    dates = [git_out(path, "show", "-s", "--date=raw", "--format=%ad", commit) for commit in placed.commits]
    assert dates == ["1700000001 +0200", "1700000003 +0200"]
    assert git_out(path, "show", f"{placed.commit}:{name}").endswith("y")


@pytest.mark.parametrize("policy", ["rebase", "ff"])
def test_a_branch_that_holds_merges_becomes_one_commit_and_says_so(
    path: Path, project: Project, policy: Policy
) -> None:
    branch(path, "side", {"s": "s\n"})
    branch(path, "work", {"c": "1\n"}, {"c": "2\n"})
    git_out(path, "switch", "-q", "work")
    git_out(path, "merge", "-q", "--no-ff", "-m", "Merge", "side")
    git_out(path, "switch", "-q", "main")
    commit_files(path, {"b": "main\n"}, "On main")
    placed = chained(project, policy, "work").links[0]
    assert len(placed.commits) == 1 and "holds merges" in placed.note
    assert git_out(path, "ls-tree", "--name-only", placed.commit).split() == ["a", "b", "c", "s"]


def test_a_branch_that_can_go_forward_stays_as_it_is(path: Path, project: Project) -> None:
    one = branch(path, "one", {"c": "1\n"}, {"c": "2\n"})
    two = branch(path, "two", {"d": "1\n"}, start="one")
    other = branch(path, "other", {"e": "1\n"})
    chain = chained(project, "ff", "one", "two", "other")
    assert [placed.commit for placed in chain.links[:2]] == [one, two]
    assert [len(placed.commits) for placed in chain.links] == [2, 1, 1]
    assert chain.head != other and shown(path, chain.head, "%P") == two


@pytest.mark.parametrize("policy", POLICIES)
def test_a_branch_on_another_brings_only_its_own_part(path: Path, project: Project, policy: Policy) -> None:
    branch(path, "below", {"a": LINES.replace("5", "five")}, {"a": LINES.replace("5", "FIVE")})
    branch(path, "above", {"a": LINES.replace("5", "six")}, start="below", by="Bob")
    commit_files(path, {"b": "main\n"}, "On main")
    chain = chained(project, policy, "below", "above")
    assert chain.stopped is None
    assert git_out(path, "show", f"{chain.head}:a") == LINES.replace("5", "six").strip()
    if policy != "merge":
        assert len(chain.links[1].commits) == 1 and shown(path, chain.head, "%an") == "Bob"


@pytest.mark.parametrize("policy", POLICIES)
def test_a_branch_that_has_merged_main_meanwhile_goes_on(path: Path, project: Project, policy: Policy) -> None:
    branch(path, "work", {"a": LINES.replace("1", "one")})
    commit_files(path, {"a": LINES.replace("1", "uno")}, "On main")
    git_out(path, "switch", "-q", "work")
    git_out(path, "merge", "-q", "-s", "ours", "-m", "Resolve", "main")
    git_out(path, "switch", "-q", "main")
    commit_files(path, {"b": "main\n"}, "Again on main")
    chain = chained(project, policy, "work")
    assert git_out(path, "show", f"{chain.head}:a") == LINES.replace("1", "one").strip()
    assert git_out(path, "show", f"{chain.head}:b") == "main"


def test_names_and_messages_of_any_kind_are_kept_as_git_keeps_them(path: Path, project: Project) -> None:
    branch(path, "work", {"c": "1\n"})
    wanted = link("work", message="Ünï \ud800\n\n  indented\n# no comment\n", author=(" <Ö.> ", "o <x>@y\n"))
    quick = candidate_chain.extend(project, "main", [wanted], policy="merge", at=1_700_000_000)
    slow = candidate_chain.extend(project, "main", [wanted], policy="merge", at=1_700_000_000, together=False)
    assert quick == slow
    assert shown(path, quick.head, "%an|%ae|%s|%b").startswith("Ö|o x@y|Ünï ?|  indented\n# no comment")


def test_old_encodings_and_odd_dates_do_not_stop_a_rebase(path: Path, project: Project) -> None:
    git_out(path, "config", "i18n.commitEncoding", "ISO-8859-1")
    branch(path, "latin", {"c": "1\n"})
    tree = git_out(path, "rev-parse", "latin^{tree}")
    raw = f"tree {tree}\nparent {git_out(path, 'rev-parse', 'main')}\nauthor  <> 99999999999999999999 +9999\n"
    words = ["git", "hash-object", "-t", "commit", "--literally", "-w", "--stdin"]
    text = raw.encode() + b"committer X <x@x> 1 +0000\n\ncaf\xe9\n"
    odd = subprocess.run(words, input=text, cwd=path, check=True, capture_output=True).stdout.decode().strip()
    for tip in ("latin", odd):
        quick, slow = (
            candidate_chain.extend(project, "main", [link(tip)], policy="rebase", at=1_700_000_000, together=together)
            for together in (True, False)
        )
        assert quick == slow and quick.stopped is None and not quick.links[0].is_empty


def test_a_name_that_is_no_commit_is_said(project: Project) -> None:
    for base, tip in (("main", "nowhere"), ("nowhere", "main"), ("main", "x\ny")):
        with pytest.raises(NotFound):
            candidate_chain.extend(project, base, [link(tip)], policy="merge")


def test_histories_without_a_common_beginning_do_not_merge(path: Path, project: Project) -> None:
    git_out(path, "switch", "-q", "--orphan", "alien")
    commit_files(path, {"z": "z\n"}, "Alien")
    git_out(path, "switch", "-q", "main")
    for policy in POLICIES:
        chain = chained(project, policy, "alien")
        assert chain.stopped is not None and "unrelated" in chain.stopped.conflict.message


@pytest.mark.parametrize("policy", POLICIES)
def test_a_branch_that_takes_back_what_the_one_below_it_made_does_so(
    path: Path, project: Project, policy: Policy
) -> None:
    branch(path, "below", {"c": "c\n"})
    git_out(path, "switch", "-q", "-c", "above", "below")
    git_out(path, "rm", "-q", "c")
    commit_files(path, {"d": "d\n"}, "Rather this")
    git_out(path, "switch", "-q", "main")
    commit_files(path, {"b": "main\n"}, "On main")
    chain = chained(project, policy, "below", "above")
    assert git_out(path, "ls-tree", "--name-only", chain.head).split() == ["a", "b", "d"]


@pytest.mark.parametrize("mode", ["conflict", "true", "false"])
@pytest.mark.parametrize("order", [("moves", "adds"), ("adds", "moves")])
@pytest.mark.parametrize("is_on_main", [False, True])
def test_a_folder_that_got_another_name_takes_new_files_along_as_git_merge_has_it(
    path: Path, project: Project, mode: str, order: tuple[str, str], is_on_main: bool
) -> None:
    commit_files(path, {f"old/{number}": LINES + f"{number}\n" for number in range(3)}, "A folder")
    git_out(path, "config", "merge.directoryRenames", mode)
    branch(path, "adds", {"old/new": "n\n"})
    git_out(path, "switch", "-q", "-c", "moves")
    git_out(path, "mv", "old", "young")
    git_out(path, "commit", "-q", "-m", "Move")
    git_out(path, "switch", "-q", "main")
    if is_on_main:
        git_out(path, "merge", "-q", "--ff-only", order[0])
    names = order[1:] if is_on_main else order
    chain = chained(project, "merge", *names)
    words = ["git", "merge", "-q", "--no-ff", "-m", "Merge"]
    ended = [
        subprocess.run([*words, name], cwd=path, env=user_env(), capture_output=True, check=False).returncode
        for name in names
    ]
    assert (chain.stopped is None) == (ended[-1] == 0)
    if chain.stopped is None:
        assert git_out(path, "rev-parse", f"{chain.head}^{{tree}}") == git_out(path, "rev-parse", "HEAD^{tree}")


@pytest.mark.parametrize("policy", POLICIES)
def test_a_branch_on_work_that_has_landed_squashed_brings_only_its_own_part(
    path: Path, project: Project, policy: Policy
) -> None:
    below = branch(path, "below", {"a": LINES.replace("5", "five")}, {"a": LINES.replace("5", "FIVE")})
    branch(path, "above", {"a": LINES.replace("5", "six")}, start="below", by="Bob")
    landed = chained(project, "squash", "below").head
    alone = candidate_chain.extend(project, landed, [link("above")], policy="squash")
    assert alone.stopped is not None
    chain = candidate_chain.extend(project, landed, [link("above")], policy=policy, held=[below, "0" * 40])
    assert git_out(path, "show", f"{chain.head}:a") == LINES.replace("5", "six").strip()
    assert len(chain.links[0].commits) == 1
    assert shown(path, chain.head, "%an") == ("ada" if policy == "merge" else "Bob")


# Signing


@pytest.fixture
def signer(tmp_path: Path, path: Path) -> Path:
    """Let the user's git sign with a key of ssh."""
    key = tmp_path / "key"
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(key)], check=True)
    allowed = tmp_path / "allowed"
    allowed.write_text(f"covey@localhost {key.with_suffix('.pub').read_text()}")
    facts = {"gpg.format": "ssh", "user.signingKey": str(key), "commit.gpgSign": "true"}
    for name, value in {**facts, "gpg.ssh.allowedSignersFile": str(allowed)}.items():
        git_out(path, "config", name, value)
    return key


@pytest.mark.usefixtures("signer")
@pytest.mark.parametrize("policy", POLICIES)
def test_commits_are_signed_where_the_users_git_signs(path: Path, project: Project, policy: Policy) -> None:
    for name in ("one", "two"):
        branch(path, name, {name: "x\n"}, {name: "y\n"})
    commit_files(path, {"b": "main\n"}, "On main")
    links = [link("one"), link("two")]
    chain = candidate_chain.extend(project, "main", links, policy=policy, sign=signing.key(project))
    for commit in (commit for placed in chain.links for commit in placed.commits):
        assert shown(path, commit, "%G?") == "G"


def test_a_signer_that_fails_is_an_error_and_never_an_unsigned_commit(
    path: Path, project: Project, signer: Path
) -> None:
    branch(path, "work", {"c": "1\n"})
    signer.unlink()
    signer.with_suffix(".pub").unlink()
    with pytest.raises(ToolFailed, match="could not be signed"):
        candidate_chain.extend(project, "main", [link("work")], policy="squash", sign=signing.key(project))


def test_whether_git_signs_is_asked_of_the_users_settings(
    path: Path, project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert signing.key(project) is None
    git_out(path, "config", "commit.gpgSign", "true")
    git_out(path, "config", "user.name", "Ada")
    git_out(path, "config", "user.email", "ada@example.org")
    assert signing.key(project) == "Ada <ada@example.org>"
    git_out(path, "config", "user.signingKey", "ABCD")
    assert signing.key(project) == ""
    git_out(path, "config", "commit.gpgSign", "perhaps")
    with pytest.raises(Invalid, match=r"commit\.gpgSign"):
        signing.key(project)


@pytest.mark.parametrize("policy", POLICIES)
def test_a_branch_whose_tree_is_gone_never_counts_as_one_that_changes_nothing_or_deletes_all(
    path: Path, project: Project, policy: Policy
) -> None:
    branch(path, "good", {"b": "new\n"})
    branch(path, "broken", {"c": "c\n"})
    tree = git_out(path, "rev-parse", "broken^{tree}")
    (path / ".git/objects" / tree[:2] / tree[2:]).unlink()
    chain = chained(project, policy, "good", "broken", "good")
    assert [placed.id for placed in chain.links] == ["good"]
    assert chain.stopped is not None and chain.stopped.id == "broken"
    assert "objects of its commits are missing" in chain.stopped.conflict.message
    with pytest.raises(ToolFailed):
        candidates.merge(project, candidates.find_sides(project, "main", "broken"))


def test_a_replayed_commit_says_of_its_task_only_what_covey_says(path: Path, project: Project) -> None:
    branch(path, "work", {"b": "1\n"}, {"b": "2\n"})
    forged = "Step\n\nCovey-Task: AF-9\ncovey-group: x\nReviewed-by: Ada"
    git_out(path, "switch", "-q", "work")
    git_out(path, "commit", "-q", "--amend", "-m", forged)
    git_out(path, "commit", "-q", "--allow-empty", "-m", forged)
    (path / "b").write_text("3\n")
    git_out(path, "commit", "-q", "-a", "-m", "Last\n\nCovey-Task: AF-9")
    git_out(path, "switch", "-q", "main")
    commit_files(path, {"c": "c\n"}, "On main")
    (placed,) = chained(project, "rebase", "work").links
    said = [git_out(path, "show", "-s", "--format=%B", each) for each in placed.commits]
    ours = "Covey-Task: AF-1\nCovey-Group: group-7"
    assert said[1:] == [f"Step\n\nReviewed-by: Ada\n{ours}", f"Last\n\n{ours}"]


@pytest.mark.parametrize("policy", POLICIES)
def test_what_a_branch_took_back_itself_does_not_come_in_with_one_that_stands_on_it(
    path: Path, project: Project, policy: Policy
) -> None:
    branch(path, "first", {"c": "c\n"})
    branch(path, "second", {"d": "d\n"}, start="first")
    git_out(path, "switch", "-q", "first")
    git_out(path, "rm", "-q", "c")
    git_out(path, "commit", "-q", "-m", "Take it back")
    git_out(path, "switch", "-q", "main")
    chain = chained(project, policy, "first", "second")
    assert git_out(path, "ls-tree", "--name-only", chain.head).split() == ["a", "b", "d"]
