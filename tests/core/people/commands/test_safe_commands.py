"""What needs no question: looking around in one's worktree, and the gate; and nothing that hides in such a line."""

from __future__ import annotations

import posixpath

import pytest
from hypothesis import given
from hypothesis import strategies as st

from covey.core.people.commands.safe_commands import CommandVerdict, Ground, beginnings, judge
from covey.core.people.permits import SHELL, covers, offered

HOME = "/w/ada"
GATE = ("ruff check . && python3 -m pytest -q", "make test", "./check.sh all")
GROUND = Ground(HOME, HOME, GATE, ("npm run build",))

READING = (
    "ls -la",
    "ls src/*.py",
    "cat README.md",
    "head -20 src/a.py",
    "tail -n 5 x.log",
    "sed -n '1,20p' a.py",
    "sed 's/a/b/g' a.py",
    "wc -l src/a.py",
    'grep -rn "def foo" src',
    "grep -n /api/v1 src/a.py",
    "rg -n foo src | head -5",
    "find . -name '*.py' -not -path './.git/*'",
    f"cd {HOME} && git status",
    f"cd {HOME}; git log --oneline -5",
    f"git -C {HOME} diff --stat",
    "cd src && ls",
    "cd src &&\n cat ../README.md > /dev/null 2>&1",
    "git status --short && git diff --stat",
    "git --no-pager log --oneline | head -20",
    "git show HEAD:src/a.py | sed -n '1,5p'",
    "git blame -L 1,10 a.py",
    "git branch -a",
    "git remote -v",
    "git rev-parse HEAD",
    "python3 --version",
    "python3 -V",
    "node --version && npm --version",
    "make --version | head -1",
    "which python3",
    "command -v pytest",
    "jq '.scripts' package.json",
    'echo "hello" && pwd',
    "test -f setup.py && cat setup.py",
    "[ -d src ] || echo none",
    "ls 2>/dev/null || true",
    "awk '{print $1}' data.txt",
    "awk -F, 'NR>1{print $2, $3}' data.csv",
    "sort names.txt | uniq -c | sort -rn | head",
    "diff a.py b.py",
    "du -sh src",
    "stat a.py",
    "tree -L 2",
    "date +%F",
    "LC_ALL=C.UTF-8 ls",
    "TZ=Europe/Berlin date",
    "cat <<'EOF'\nrm -rf /\nEOF",
    "cat < README.md",
    "ls # rm x",
    "printf '%s\\n' src/*",
    "printf '%03d\\n' 7",
    "sed -n 1,5p src/*.py",
    "jq -r .name packages/*/package.json",
    "diff -u a.py /dev/null",
    "diff -r --no-dereference a b",
    "git log -L1,10:src/a.py",
    "git log --format=%h/%s",
    "git diff src/*.py",
    "awk -F, '{print $1}' src/*.csv",
    "[ a == b ]",
    "ls a=b",
)
OF_THE_LEVEL = (
    "python3 -m pytest tests/test_a.py::test_b -x",
    "python -m pytest -k 'a or b' 2>&1 | tail -20",
    "pytest tests/test_a.py -q",
    "pytest --version",
    "py.test -x",
    "PYTHONDONTWRITEBYTECODE=1 python3 -m pytest -q",
    "ruff check src/a.py",
    "make test",
    "make test -j4",
    "make -n test",
    "make --dry-run deploy",
    "./check.sh all",
    "npm run build",
    "covey task list",
    f'cd {HOME} && git add -A && git commit -m "Do (this); and that"',
    "git checkout -- src/a.py",
)
MORE = (
    "python3 -c 'print(1)'",
    "python3 evil.py",
    "python3 -m http.server",
    "python3 -m pytest --pastebin=all",
    "pytest --pastebin=all",
    "pytest /elsewhere/test_a.py",
    "./pytest",
    "python3 -m pytest /elsewhere/test_a.py",
    "pip install x",
    "curl https://example.org",
    "make deploy",
    "make test deploy",
    "make -n -f /tmp/x",
    "make -n SHELL=/tmp/x",
    "./check.sh some",
    "npm publish",
    "git push",
    "git fetch",
    "git config core.fsmonitor x",
    "git -C /elsewhere log",
    "git rebase -x sh main",
    "cat /etc/passwd",
    "cat ../other/x",
    "cat ~/.ssh/id_rsa",
    "cat '~/x'",
    "cd .. && ls",
    "cd; ls",
    "cd - && ls",
    "cd sub; cat ../../x",
    "cd sub; cat ../x",
    "cd sub || cat ../x",
    "cd sub | true && cat ../x",
    "ls | cd sub && cat ../x",
    "cd sub && ls; cat ../x",
    "cd sub & cat ../x",
    "cd sub\ncat ../x",
    "cat -- -x/../../../etc/passwd",
    "grep -- -x /etc/passwd",
    "grep -f /etc/passwd x",
    "grep -R x .",
    "tail -f x",
    "./ls",
    "/bin/ls",
    "cat *",
    "ls {a,b}",
    "cat .*/x",
    "cat $FILE",
    "(ls)",
    "! ls",
    "for f in a b; do cat $f; done",
    "ls # \\\nrm x",
)
SMUGGLED = (
    "rm x",
    "echo x > out.txt",
    "echo x >> ../out.txt",
    "cat a | tee b",
    "ls &> out.txt",
    "ls >| out.txt",
    "ls 3<> out.txt",
    "find . -name x -delete",
    "find . -exec rm {} ;",
    "find . -fprintf out x",
    "find . | xargs rm",
    "echo /etc/passwd | xargs cat",
    "xargs rm < list",
    "rg --pre ./evil foo",
    "sed -i s/a/b/ x",
    "sed --in-place s/a/b/ x",
    "sed -n 'w out' x",
    "sed 's/a/b/e' x",
    "sed 's/a/b/w out' x",
    "sed -n '1e id' x",
    "sed -f script x",
    "awk 'BEGIN{system(\"id\")}'",
    "awk '{print > \"out\"}' y",
    "awk '{print | \"sh\"}' y",
    "awk '{\"id\" | getline; print}' y",
    "awk -f prog y",
    "awk -v a=1 '{print}' y",
    "git -c core.pager=./evil log",
    "git -c alias.x=!id x",
    "git --exec-path=. status",
    "git diff --no-index /etc/passwd x",
    "git diff --ext-diff",
    "git log --output=x",
    "git grep -O./evil foo",
    "git cat-file --textconv HEAD:x",
    "GIT_EXTERNAL_DIFF=./evil git diff",
    "GIT_DIR=/elsewhere git log",
    "PATH=. ls",
    "LD_PRELOAD=./x.so ls",
    "export PATH=.",
    "PATH=.:/bin",
    "alias ls=rm",
    "eval ls",
    "sh -c ls",
    "env ls",
    "sudo ls",
    "source x.sh",
    ". ./x.sh",
    "exec rm x",
    "sort -o out x",
    "sort --out=out x",
    "sort --compress-program=./evil x",
    "uniq a b",
    "tree -o out",
    "date -s 2020-01-01",
    "printf -v PATH .",
    "test -v 'a[$(id)]'",
    "[ -v 'a[$(id)]' ]",
    "wc --files0-from=list",
    "file -z x",
    "nc example.org 80",
    "scp a host:b",
    "gh pr merge 4",
    "git push --no-verify",
    "git send-pack x",
    "wget https://example.org/x",
    "cat /dev/tcp/example.org/80",
    "cat < /dev/tcp/example.org/80",
    "trap 'rm x' EXIT",
    "function ls { rm x; }",
    "ls() { rm x; }",
    "coproc rm x",
    "echo x | uniq - out",
    "uniq -- - out",
    "uniq src/*",
    "awk '\"a'*'\"==1' x",
    "awk -F a* '{print}' x",
    "sed -n 1,a*p x",
    "cd s* && ls",
    "jq i*/* x",
    'jq -n \'import "x" as $x {search:"/elsewhere"}; $x\'',
    'jq -n \'# no\nimport "x" as $x {search:"/elsewhere"}; $x\'',
    "printf 'aaaaa%n' PATH",
    "printf -- '%.0n' PATH",
    "printf %ln PATH",
    "printf %d 'path[$(id)]'",
    "printf '%*d' 'path[$(id)]' 1",
    "printf %n* PATH",
    "printf --",
    "strings @list",
    "tree -R -L 1 -H .",
    "diff -rN a b",
    "diff -N --recursive a b",
    "ls -RL .",
    "ls --deref .",
    "git blame --contents=/etc/passwd x",
    "git blame --ignore-revs-file=/etc/passwd x",
    "git ls-files -X/etc/passwd",
    "git grep -f/etc/passwd",
    "git config -l -f/etc/gitconfig",
    "git symbolic-ref refs/heads/*",
    "git merge -F notes other",
    "git commit --pathspec-from-file=notes -m x",
    "rg --files -u /etc",
    "rg --type-list -u /etc",
    "cat =python",
    "cat ''=python",
    "LANGUAGE=../../../tmp/x ls none",
    "LC_ALL=/tmp/x ls none",
    "TZ=:/etc/x date",
    "TZ=../../x date",
)


@pytest.mark.parametrize("line", READING)
def test_looking_around_needs_no_question(line: str) -> None:
    assert judge(line, GROUND).verdict is CommandVerdict.READS


@pytest.mark.parametrize("line", OF_THE_LEVEL)
def test_what_the_level_has_needs_no_question_there(line: str) -> None:
    assert judge(line, GROUND).verdict is CommandVerdict.LEVEL


@pytest.mark.parametrize("line", [*MORE, *SMUGGLED])
def test_all_else_is_asked_for(line: str) -> None:
    assert judge(line, GROUND).verdict is CommandVerdict.ASKS


reading = st.sampled_from([line for line in (*READING, *OF_THE_LEVEL) if "\n" not in line and "#" not in line])
smuggled = st.sampled_from(SMUGGLED)
joins = st.sampled_from([" && ", " || ", "; ", " | ", "\n", " & ", " |& ", " &&\\\n", ";"])
hides = st.sampled_from(
    [
        "{}", "echo $({})", 'echo "$({})"', "echo `{}`", 'echo "`{}`"', "cat <({})", "ls >({})", "( {} )", "{{ {}; }}",
        "if true; then {}; fi", "while {}; do ls; done", "case x in x) {};; esac", "echo ${{x:-$({})}}", "time {}",
        "cat <<EOF\n$({})\nEOF", "ls # x\n{}", "ls 'a\nb'\n{}", "x=$({}) ls", "cat <<< $({})", "echo $(( $({}) ))",
        "echo \\\n{}\n{}", "ls > $({})", "coproc {}", "! {}", "echo \"a\" 'b' \"$({})\" c",
    ]
)  # fmt: skip


@given(st.lists(reading, max_size=3), smuggled, hides, st.lists(reading, max_size=3), st.lists(joins, min_size=8))
def test_no_composition_smuggles_anything_into_a_reading(
    before: list[str], bad: str, hide: str, after: list[str], between: list[str]
) -> None:
    hidden = hide.replace("{{", "\1").replace("}}", "\2").replace("{}", bad).replace("\1", "{").replace("\2", "}")
    parts = [*before, hidden, *after]
    line = "".join(part + join for part, join in zip(parts, [*between, "\n" * 9], strict=False))[: -len("\n") or None]
    assert judge(line, GROUND).verdict is CommandVerdict.ASKS, line


@given(st.lists(reading, min_size=1, max_size=4), st.lists(st.sampled_from([" && ", "; ", " | "]), min_size=4))
def test_readings_stay_readings_however_they_are_joined(parts: list[str], between: list[str]) -> None:
    line = parts[0] + "".join(join + part for join, part in zip(between, parts[1:], strict=False))
    if "cd " not in line:  # where one stands decides what the next names
        assert judge(line, GROUND).verdict is not CommandVerdict.ASKS, line


@given(
    st.sampled_from(("cat", "head", "ls", "wc", "stat", "grep x", "sed -n 1p", "sort", "diff a")),
    st.text("./ab", max_size=12),
)
def test_a_name_that_leads_out_of_the_worktree_is_asked_for(program: str, name: str) -> None:
    place = posixpath.normpath(posixpath.join(HOME, name))
    judged = judge(f"{program} {name}", GROUND)
    if name and place != HOME and not place.startswith(f"{HOME}/"):
        assert judged.verdict is CommandVerdict.ASKS
    assert all(path == HOME or path.startswith(f"{HOME}/") for path in judged.paths)


@given(st.text(st.sampled_from([*"catls g./-'\"\\$()`;|&<>{}\n#*~= x"]), max_size=60))
def test_whatever_a_line_is_judging_it_ends(line: str) -> None:
    assert judge(line, GROUND).verdict in CommandVerdict


def test_from_another_folder_nothing_is_let_through() -> None:
    assert judge("ls", Ground(HOME, "/w/eve")).verdict is CommandVerdict.ASKS
    assert judge("ls", Ground(HOME, f"{HOME}/src")).verdict is CommandVerdict.READS
    assert judge("cat ../../x", Ground(HOME, f"{HOME}/src")).verdict is CommandVerdict.ASKS


def test_a_pattern_names_files_wherever_it_stands() -> None:
    for line in ("grep -v src/*", "echo src/*", "git log -S src/*", "sed -n 1p src/*"):
        assert f"{HOME}/src/*" in judge(line, GROUND).paths, line


def test_a_name_is_told_as_it_stands_since_a_link_may_be_before_the_dots() -> None:
    assert judge("cat src/link/../a.py", GROUND).paths == (f"{HOME}/src/link/../a.py",)
    assert f"{HOME}/src/link/../a.py" in judge("cd src/link && cat ../a.py", GROUND).paths
    assert {f"{HOME}/link/../src", f"{HOME}/src"} <= {*judge("cd link/../src && ls", GROUND).paths}


def test_diff_looks_into_folders_through_the_links_there() -> None:
    assert f"{HOME}/src/*" in judge("diff -N docs src", GROUND).paths
    assert f"{HOME}/src/*" in judge("diff -N docs --from-file=src", GROUND).paths


def test_where_git_looks_for_its_repository_is_told() -> None:
    assert judge("git status && cat a.py", GROUND).asked_git == ()
    assert judge(f"cd sub && git -C {HOME} status", GROUND).asked_git == ()
    assert judge("cd sub && git status", GROUND).asked_git == (f"{HOME}/sub",)
    assert judge("cd sub && git commit -m x", GROUND).asked_git == (f"{HOME}/sub",)
    assert judge("git status", Ground(HOME, f"{HOME}/sub")).asked_git == (f"{HOME}/sub",)


def test_a_shell_that_only_reads_a_script_does_not_run_it() -> None:
    ground = Ground(HOME, HOME, ("bash -n run.sh",))
    assert judge("bash -n other.sh", ground).verdict is CommandVerdict.LEVEL
    for line in ("bash -n +n other.sh", "bash -n +n -c 'rm x'", "bash -n -O extglob -c 'rm x'"):
        assert judge(line, ground).verdict is CommandVerdict.ASKS


def test_what_a_gate_runs_is_known_by_its_first_words() -> None:
    assert beginnings(GATE) == ("ruff check", "python3 -m pytest")


@pytest.mark.parametrize(
    ("command", "rule"),
    [
        ("python3 -c 'print(1)'", "python3 -c"),
        (f"cd {HOME} && python3 -c 'print(1)' | head", "python3 -c"),
        ("python3 -m http.server 80", "python3 -m http.server"),
        ("npm install left-pad", "npm install"),
        ("curl -s https://example.org", "curl"),
        ("docker build .", "docker build"),
        ("mypy src/a.py", "mypy"),
        ("python3 -m unittest tests.test_a", "python3 -m unittest"),
        ("npm run test -- a", "npm run test"),
        ("rm x; curl y", None),
        ("ls > x", None),
        ("$CMD x", None),
    ],
)
def test_a_rule_is_offered_that_says_what_it_would_allow(command: str, rule: str | None) -> None:
    offer = offered(SHELL, command)
    assert (offer.rule if offer else None) == rule
    if offer is not None:
        assert offer.allows
        assert judge(command, Ground(HOME, HOME, (), (offer.rule,))).verdict is CommandVerdict.LEVEL


@pytest.mark.parametrize(
    ("command", "allows"),
    [
        ("python3 -c 'print(1)'", "any program in the language of python3"),
        ("python3 - <<'X'\nprint(1)\nX", "any program in the language of python3"),
        ("cat a.py | python3", "any program in the language of python3"),
        ("bash -x a.sh", "any program in the language of bash"),
        ("python3 a.py 1", "every command that begins with python3 a.py"),
        ("python3 -m http.server", "every command that begins with python3 -m http.server"),
        ("env | head -3", "any program at all"),
        ("ls | xargs rm", "every command that begins with xargs rm"),
        ("ls | xargs -n 1 rm", "any program at all"),
        ("sudo -n ls", "any program at all"),
        ("timeout 60 rm x", "any program at all"),
        ("env A=1 rm x", "any program at all"),
        ("env python x.py", "any program at all"),
        ("python3.11 -c 1", "any program in the language of python3.11"),
        ("node --eval 1", "any program in the language of node"),
    ],
)
def test_a_rule_that_lets_anything_run_says_so(command: str, allows: str) -> None:
    offer = offered(SHELL, command)
    assert offer is not None and offer.allows.startswith(allows)


def test_pytest_by_either_of_its_names_is_the_gates_own() -> None:
    for gate, line in (("pytest -q", "python3 -m pytest tests/test_a.py"), ("python -m pytest", "pytest -k b")):
        assert judge(line, Ground(HOME, HOME, (gate,))).verdict is CommandVerdict.LEVEL
    assert judge("pytest", Ground(HOME, HOME, ("python3 -m unittest",))).verdict is CommandVerdict.ASKS


def test_a_permit_covers_what_is_quoted_but_nothing_that_rides_along() -> None:
    assert covers(SHELL, "python3 -c", SHELL, "python3 -c 'import os; print(1)'")
    assert not covers(SHELL, "python3 -c", SHELL, "python3 -c 'x' && rm y")
    assert not covers(SHELL, "python3 -c", SHELL, 'python3 -c "$(rm x)"')
    assert not covers(SHELL, "python3 -c", SHELL, "python3 -c 'x' > y")
    assert not covers(SHELL, "python3 -c", SHELL, "A='1' python3 -c x")
