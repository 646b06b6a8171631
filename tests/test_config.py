"""What covey.toml may say, and the line of what it may not."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from pathlib import Path

import pytest

from covey import config
from covey.config import AgentSettings, Config
from covey.core.costs.spending import Price
from covey.core.merging.checks import PathCheck
from covey.core.people.permits import PermissionLevel
from covey.errors import Invalid
from tests.worlds.serving import wait_until


@pytest.mark.parametrize("value", ["-1", "nan", "inf", "-inf", "10_000_001"])
def test_megabytes_to_keep_have_a_range(value: str) -> None:
    with pytest.raises(Invalid, match="line 2: keep_megabytes must be between 0 and 10,000,000"):
        config.parse(f"[log]\nkeep_megabytes = {value}\n")


def test_nothing_may_be_kept() -> None:
    assert config.parse("[log]\nkeep_megabytes = 0\n").log.keep_megabytes == 0


def test_a_number_too_large_for_a_number_is_named_with_its_line() -> None:
    with pytest.raises(Invalid, match="line 3: ttl is too large a number"):
        config.parse(f"# Long\n[leases]\nttl = {'9' * 400}\n")


# Agents of one's own


def test_an_agent_is_declared_by_its_command_and_what_it_gets_of_the_environment() -> None:
    read = config.parse(
        '[agents.sh]\ncommand = ["bash", "{body_file}"]\nenv = ["LANG"]\n[agents.a-1]\ncommand = ["a"]\n'
    )
    assert read.agents == {
        "sh": AgentSettings(("bash", "{body_file}"), ("LANG",)),
        "a-1": AgentSettings(("a",)),
    }


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("agents = 3\n", r"line 1: \[agents\] is a table"),
        ("[agents]\nsh = 3\n", r"line 2: \[sh\] is a table"),
        ("[agents.sh]\n", "line 1: the agent sh has no command"),
        ("[agents.sh]\ncommand = []\n", "line 1: the agent sh has no command"),
        ('[agents.sh]\ncommand = [""]\n', "line 1: the agent sh has no command"),
        ('[sessions.push]\norigin = "main"\n', "line 2: origin must be a list of texts, not 'main'"),
        ('[sessions.push]\norigin = ["a b"]\n', "line 2: 'a b' is not a pattern of refs"),
        ('[sessions.push]\na = ["x"]\nb = ["["]\n', "line 3: "),
        ('[sessions.push]\n"a b" = ["x"]\n', "'a b' is not a remote"),
        ('[agents.sh]\ncommand = "bash"\n', "line 2: command must be a list of texts, not 'bash'"),
        ('[agents.sh]\ncommand = ["bash", 3]\n', "line 2: command must be a list of texts"),
        ('[agents.sh]\ncommand = ["a"]\nenv = "LANG"\n', "line 3: env must be a list of texts"),
        ('[agents.sh]\ncomand = ["a"]\n', r"line 2: there is no setting comand in \[agents.sh\]"),
        ('[agents."a b"]\ncommand = ["a"]\n', "'a b' is not a name for an agent"),
        ('[agents."-x"]\ncommand = ["a"]\n', "'-x' is not a name for an agent"),
    ],
)
def test_an_agent_that_makes_no_sense_is_named_with_its_line(text: str, said: str) -> None:
    with pytest.raises(Invalid, match=said):
        config.parse(text)


def test_the_agent_that_is_set_or_the_only_one_is_the_default() -> None:
    one, two = '[agents.sh]\ncommand = ["a"]\n', '[agents.zsh]\ncommand = ["b"]\n'
    assert config.parse(one).default_agent() == "sh"
    assert config.parse('[sessions]\nagent = "zsh"\n' + one + two).default_agent() == "zsh"
    assert config.parse('[sessions]\nagent = "scripted"\n').default_agent() == "scripted"
    for text in ("", one + two, '[agents.claude]\nmodel = "opus"\n'):
        assert config.parse(text).default_agent() == "claude"


def test_an_agent_that_covey_knows_may_have_another_program_arguments_and_model() -> None:
    read = config.parse(
        '[agents.claude]\nprogram = "/opt/claude"\narguments = ["--verbose"]\nmodel = "opus"\nenv = ["MY_KEY"]\n'
    )
    own = AgentSettings(env=("MY_KEY",), program="/opt/claude", arguments=("--verbose",), model="opus")
    assert read.agents == {"claude": own}
    assert read.declared() == {}, "it is no program of one's own"


@pytest.mark.parametrize("besides", ['program = "x"', 'arguments = ["x"]'])
def test_an_agent_has_a_command_or_changes_one_that_covey_knows(besides: str) -> None:
    with pytest.raises(Invalid, match="line 1: sh has a command, and program or arguments besides"):
        config.parse(f'[agents.sh]\ncommand = ["bash"]\n{besides}\n')


# Ranges and words


@pytest.mark.parametrize("policy", config.POLICIES)
def test_work_is_merged_in_one_of_these_ways(policy: str) -> None:
    assert config.parse(f'[merge]\npolicy = "{policy}"\n').merge.policy == policy


def test_another_way_to_merge_is_named_with_its_line() -> None:
    with pytest.raises(Invalid, match="line 3: policy must be squash or merge or rebase or ff, not 'octopus'"):
        config.parse('[merge]\ncheck = "make"\npolicy = "octopus"\n')


@pytest.mark.parametrize(("name", "known"), [("strategy", config.STRATEGIES), ("isolate", config.ISOLATIONS)])
def test_a_word_of_the_merge_queue_is_one_of_those_known(name: str, known: tuple[str, ...]) -> None:
    assert getattr(config.Merge(), name) == known[0]
    for word in known:
        assert getattr(config.parse(f'[merge]\n{name} = "{word}"\n').merge, name) == word
    with pytest.raises(Invalid, match=f"line 2: {name} must be {' or '.join(known)}, not 'any'"):
        config.parse(f'[merge]\n{name} = "any"\n')


def test_work_lands_on_main_unless_a_branch_is_named() -> None:
    assert config.Config().target == "main"
    assert config.parse('[project]\nmain = "trunk"\n').target == "trunk"
    assert config.parse('[project]\nmain = "trunk"\n[merge]\nbranch = "next/all"\n').target == "next/all"


@pytest.mark.parametrize(
    ("name", "value", "what"),
    [
        *(("branch", wrong, "a branch") for wrong in ("-x", "a b", "a..b", "a/", ".a", "a.lock", "a~1", "a//b")),
        ("push", "not a remote", "a remote"),
        ("push", "--mirror", "a remote"),
        ("review_role", "a role", "a role"),
    ],
)
def test_a_name_of_the_merge_queue_that_makes_no_sense_is_named_with_its_line(name: str, value: str, what: str) -> None:
    with pytest.raises(Invalid, match=f"line 2: '{value}' is not a name for {what}"):
        config.parse(f'[merge]\n{name} = "{value}"\n')


def test_further_checks_are_a_list_of_tables_with_paths_and_what_to_run() -> None:
    text = '[merge]\ncheck = "make"\n[[merge.checks]]\npaths = ["web/**"]\nrun = "npm test"\n'
    assert config.parse(text).merge.checks == (PathCheck(("web/**",), "npm test"),)
    text = '[merge]\ncheck = "make"\nchecks = [{paths = ["a"], run = "b"}, {paths = ["c"], run = "d"}]\n'
    assert config.parse(text).merge.checks == (PathCheck(("a",), "b"), PathCheck(("c",), "d"))


_GOOD = '[merge]\ncheck = "make"\n[[merge.checks]]\npaths = ["a"]\nrun = "b"\n[[merge.checks]]\n'


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (_GOOD + 'paths = ["c"]\n', "line 7: a check of its own needs paths and run"),
        (_GOOD + 'run = "c"\n', "line 6: a check of its own needs paths and run"),
        (_GOOD + 'run = "c"\npaths = ["[z-a]"]\n', "line 8: "),
        (_GOOD + 'run = "c"\npath = ["a"]\n', r"line 8: there is no setting path in \[merge.checks\]"),
        (_GOOD + 'run = "c"\npaths = "a"\n', "line 8: paths must be a list of texts"),
        ('[merge]\ncheck = "make"\nchecks = [{paths = ["c"]}]\n', "line 3: a check of its own needs paths and run"),
        ('[merge]\nchecks = "make"\n', "line 2: checks must be a list of tables"),
        ('[merge]\nchecks = ["make"]\n', "line 2: checks must be a list of tables"),
        ('[merge]\nquick = "make lint"\n', "line 2: quick is run besides check, and there is no check"),
        ('[[merge.checks]]\npaths = ["a"]\nrun = "b"\n', "line 1: checks is run besides check"),
    ],
)
def test_a_further_check_that_makes_no_sense_is_named_with_its_line(text: str, said: str) -> None:
    with pytest.raises(Invalid, match=said):
        config.parse(text)


@pytest.mark.parametrize(
    ("table", "name", "value"),
    [
        ("board", "tries", 0),
        ("sessions", "count", 0),
        ("sessions", "max", 0),
        ("sessions", "run_minutes", 0),
        ("sessions", "dead_after", 0),
        ("sessions", "stagger", -2),
        ("sessions", "free_memory", -1),
        ("budget", "run", -1),
        ("budget", "task", -0.5),
        ("budget", "session", "nan"),
        ("budget", "day", "inf"),
        ("watch", "stalled_minutes", 0),
        ("watch", "request_minutes", 0),
        ("watch", "answer_minutes", 0),
        ("watch", "backoff", -1),
        ("watch", "backoff_most", -1),
        ("watch", "crashes", 0),
        ("watch", "crash_minutes", 0),
        ("watch", "repeats", 1),
        ("budget.tokens", "run", -1),
        ("budget.tokens", "task", -1),
        ("budget.tokens", "session", -1),
        ("budget.tokens", "day", 10**16),
        ("merge", "check_minutes", 0),
        ("merge", "check_minutes", "inf"),
        ("merge", "slots", -1),
        ("merge", "slots", 65),
    ],
)
def test_a_number_out_of_its_range_is_named_with_its_line(table: str, name: str, value: object) -> None:
    with pytest.raises(Invalid, match=f"line 2: {name} must be between"):
        config.parse(f"[{table}]\n{name} = {value}\n")


@pytest.mark.parametrize(("name", "value"), [("count", "2.5"), ("max", '"many"'), ("count", "true")])
def test_how_many_is_a_whole_number(name: str, value: str) -> None:
    with pytest.raises(Invalid, match=f"line 2: {name} must be a whole number"):
        config.parse(f"[sessions]\n{name} = {value}\n")


@pytest.mark.parametrize(("name", "known"), [("runner", config.RUNNERS), ("permissions", tuple(PermissionLevel))])
def test_a_word_of_the_sessions_is_one_of_those_known(name: str, known: tuple[str, ...]) -> None:
    for word in known:
        assert getattr(config.parse(f'[sessions]\n{name} = "{word}"\n').sessions, name) == word
    with pytest.raises(Invalid, match=f"line 2: {name} must be {' or '.join(known)}, not 'any'"):
        config.parse(f'[sessions]\n{name} = "any"\n')


def test_sessions_allow_a_list_of_commands() -> None:
    assert config.parse('[sessions]\nallow = ["npm test"]\n').sessions.allow == ("npm test",)
    with pytest.raises(Invalid, match="line 2: allow must be a list of texts"):
        config.parse('[sessions]\nallow = "npm test"\n')


def test_a_terminal_has_a_size_that_is_given_in_columns_and_rows() -> None:
    assert config.Sessions().terminal_size == (200, 50)
    assert config.parse('[sessions]\nterminal = "80x24"\n').sessions.terminal_size == (80, 24)
    for wrong in ("80", "80 x 24", "19x24", "80x4", "1001x24", "80x1001", "80x24x2", "-80x24", ""):
        with pytest.raises(Invalid, match=f"line 2: terminal must be columns x rows .*, not '{wrong}'"):
            config.parse(f'[sessions]\nterminal = "{wrong}"\n')


# Budgets and prices


def test_a_budget_is_money_and_tokens() -> None:
    read = config.parse("[budget]\nrun = 2\nday = 50.5\n[budget.tokens]\ntask = 3_000_000\n").budget
    assert read == config.Budget(run=2.0, day=50.5, tokens=config.Tokens(task=3_000_000))
    assert config.Config().budget == config.Budget(), "nothing has a limit unless it is set"


def test_tokens_are_whole() -> None:
    with pytest.raises(Invalid, match=r"line 2: run must be a whole number, not 1\.5"):
        config.parse("[budget.tokens]\nrun = 1.5\n")


def test_a_model_has_a_price_for_each_kind_of_token() -> None:
    text = '[prices."claude-sonnet-4.5"]\ninput = 3\noutput = 15\ncache_read = 0.3\ncache_write = 3.75\n'
    price = Price(input=3.0, output=15.0, cache_read=0.3, cache_write=3.75)
    assert config.parse(text).prices == {"claude-sonnet-4.5": price}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('[prices.sonnet]\ninput = "cheap"\n', "line 2: input must be a number, not 'cheap'"),
        ("[prices.sonnet]\ninput = -1\n", "line 1: a price is between 0 and 1,000,000 dollars"),
        ("[prices.sonnet]\ninput = nan\n", "line 1: a price is between 0 and 1,000,000 dollars"),
        ("[prices.sonnet]\noutptu = 1\n", r"line 2: there is no setting outptu in \[prices.sonnet\]"),
        ("[prices]\nsonnet = 3\n", r"line 2: \[sonnet\] is a table"),
    ],
)
def test_a_price_that_makes_no_sense_is_named_with_its_line(text: str, said: str) -> None:
    with pytest.raises(Invalid, match=said):
        config.parse(text)


# Changes while covey runs


def test_a_watcher_gives_the_settings_once_after_each_change(tmp_path: Path) -> None:
    file = tmp_path / config.FILE
    file.write_text("[board]\ntries = 4\n")
    watcher = config.Watcher(tmp_path)
    assert watcher.changed() is None
    for tries in (55, 666):  # of another length each: two writes may fall into one tick of the clock
        file.write_text(f"[board]\ntries = {tries}\n")
        seen = watcher.changed()
        assert seen is not None and seen.board.tries == tries
        assert watcher.changed() is None


def test_a_watcher_sees_settings_come_and_go(tmp_path: Path) -> None:
    watcher = config.Watcher(tmp_path)
    assert watcher.changed() is None
    (tmp_path / config.FILE).write_text("[board]\ntries = 7\n")
    seen = watcher.changed()
    assert seen is not None and seen.board.tries == 7
    (tmp_path / config.FILE).unlink()
    wait_until(lambda: watcher.changed() == config.Config(), "it stays away")


@pytest.mark.parametrize("is_there", [True, False])
def test_settings_that_are_just_saved_are_not_taken_for_none(tmp_path: Path, is_there: bool) -> None:
    file = tmp_path / config.FILE
    file.write_text("[merge]\ncheck = 'make test'\n")
    watcher = config.Watcher(tmp_path)
    file.write_text("") if is_there else file.unlink()  # as an editor, or git on its way to another branch
    assert watcher.changed() is None
    file.write_text("[merge]\ncheck = 'make all'\n")
    seen = watcher.changed()
    assert seen is not None and seen.merge.check == "make all"
    file.write_text("")
    wait_until(lambda: watcher.changed() == config.Config(), "it stays empty")


def test_a_watcher_refuses_settings_that_make_no_sense_until_they_are_mended(tmp_path: Path) -> None:
    watcher = config.Watcher(tmp_path)
    file = tmp_path / config.FILE
    file.write_text("[board]\ntires = 7\n")
    for _ in range(2):
        with pytest.raises(Invalid, match="line 2: there is no setting tires"):
            watcher.changed()
    file.write_text("[board]\ntries = 7\n")
    seen = watcher.changed()
    assert seen is not None and seen.board.tries == 7


def test_a_setting_that_stands_in_the_wrong_table_is_told_where_it_belongs() -> None:
    for text in ('[project]\nmain = "main"\ncheck = "make test"\n', 'check = "make test"\n'):
        with pytest.raises(Invalid, match="there is no setting") as told:
            config.parse(text)
        assert told.value.hint == "check belongs to [merge]: write that line above it."


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ('[agents.foo]\nenvs = { A = "1" }\n', "Did you mean env?"),
        ("[merge]\nslot = { a = 1 }\n", "Did you mean slots?"),
        ("[merge.cheks]\na = 1\n", "Did you mean checks?"),
        ("[merge]\nstep = { a = 1 }\n", "Known here: "),
        ("[merge]\ntoken = { a = 1 }\n", "Did you mean [budget.tokens]?"),
        ("[sessions.pus]\na = 1\n", "Did you mean [sessions.push]?"),
        ("[limits]\nleases = { a = 1 }\n", "Did you mean [leases]?"),
        ("bord = 3\n", "Did you mean [board]?"),
    ],
)
def test_a_neighbour_in_the_same_table_is_meant_before_a_table_that_is_no_nearer(text: str, hint: str) -> None:
    with pytest.raises(Invalid, match="there is no setting") as told:
        config.parse(text)
    assert told.value.hint.startswith(hint)


@pytest.mark.parametrize(
    ("header", "meant"), [("agent.mine", "agents"), ("push", "sessions.push"), ("lease", "leases"), ("bord", "board")]
)
def test_a_table_that_does_not_exist_is_told_with_the_nearest_one(header: str, meant: str) -> None:
    with pytest.raises(Invalid, match="line 1: there is no setting") as told:
        config.parse(f'[{header}]\ncommand = ["bash"]\n')
    assert told.value.hint == f"Did you mean [{meant}]?"


@pytest.mark.parametrize("name", ["check", "quick"])
def test_a_blank_gate_is_no_gate(name: str) -> None:
    with pytest.raises(Invalid, match=f"line 2: {name} is blank"):
        config.parse(f'[merge]\n{name} = "   "\n')


def test_an_old_file_with_pristine_still_loads_and_the_room_has_settings() -> None:
    for value in ("true", "false"):
        assert config.parse(f"[merge]\npristine = {value}\n").merge.check == ""
    text = '[merge]\nnetwork = true\nenv = ["A_B"]\nshow = ["~/x", "/y"]\ncache = ["build", "a/b"]\n'
    merge = config.parse(text).merge
    assert (merge.network, merge.env, merge.show, merge.cache) == (True, ("A_B",), ("~/x", "/y"), ("build", "a/b"))


@pytest.mark.parametrize(
    "line",
    ['env = ["GIT_DIR"]', 'env = ["COVEY_TOKEN"]', 'env = ["a b"]', 'show = ["x"]', 'show = ["/x/../y"]',
     'cache = [""]', 'cache = ["/tmp"]', 'cache = ["../x"]', 'cache = ["a/../../x"]', 'cache = [".git"]',
     'cache = ["a/.git/b"]',
     'cache = ["*"]', 'cache = ["."]'],
)  # fmt: skip
def test_a_setting_of_the_room_that_leads_elsewhere_is_refused(line: str) -> None:
    with pytest.raises(Invalid, match="line 2"):
        config.parse(f"[merge]\n{line}\n")


def _numbers(table: object, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    for each in fields(table):  # type: ignore[arg-type]
        value = getattr(table, each.name)
        if is_dataclass(value):
            yield from _numbers(value, (*path, each.name))
        elif isinstance(value, int | float) and not isinstance(value, bool):
            yield (*path, each.name)


@pytest.mark.parametrize("path", [*_numbers(Config())], ids=".".join)
def test_every_number_has_a_least_and_a_greatest_value(path: tuple[str, ...]) -> None:
    *tables, name = path
    for value in ("-2", "10_000_000_000_000_000"):
        with pytest.raises(Invalid, match=f"line 2: {name} must be between"):
            config.parse(f"[{'.'.join(tables)}]\n{name} = {value}\n")
