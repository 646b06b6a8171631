"""Whoever reads many branches at once reads the good ones, whatever lies beside them."""

from __future__ import annotations

from itertools import combinations
from pathlib import Path

import pytest

from covey.git.candidates.incoming import Inspector
from covey.git.overlap import overlap
from covey.git.overlap.overlap import Branches
from covey.git.project import find
from tests.worlds.crafted import BROKEN, FILE, ODD, Forge
from tests.worlds.repositories import make_repository


@pytest.fixture(scope="module")
def forge(tmp_path_factory: pytest.TempPathFactory) -> Forge:
    return Forge(make_repository(tmp_path_factory.mktemp("forge") / "project"))


@pytest.fixture(scope="module")
def bad(forge: Forge) -> list[str]:
    return [craft(forge) for name, craft in {**BROKEN, **ODD}.items()]


@pytest.fixture(scope="module")
def good(forge: Forge) -> tuple[str, str]:
    one, other = (forge.adding((FILE, b"README.md", forge.blob(b"%d\n" % number))) for number in range(2))
    return one, other


def test_the_radar_compares_good_branches_beside_every_bad_one(
    forge: Forge, bad: list[str], good: tuple[str, str]
) -> None:
    main, branches = forge.main(), Branches(find(forge.path), Inspector())
    looks = branches.look(main, [*bad, *good])
    assert set(good) <= looks.keys()
    branches.compare(main, [(tip, main) for tip in looks])
    met = branches.compare(main, list(combinations(good, 2)) + [(good[0], tip) for tip in bad if tip in looks])
    assert met[good].conflicts == ("README.md",) and met[good].close == ("README.md",)
    written = branches.written(dict.fromkeys(looks), 0.0)
    assert [write.path for write in written[good[0]]] == ["README.md"]


def test_clashes_of_good_branches_are_found_beside_bad_ones_that_no_rule_has_seen(
    forge: Forge, good: tuple[str, str]
) -> None:
    project, main = find(forge.path), forge.main()
    broken = [craft(forge) for name, craft in BROKEN.items() if name != "deep"]
    pairs = [*((good[0], tip) for tip in broken), good]
    assert overlap.between(project, main, pairs) == {good}


def test_a_branch_that_unfolds_to_a_thousand_million_files_is_not_even_listed(forge: Forge, tmp_path: Path) -> None:
    bomb = ODD["a bomb"](forge)
    assert Branches(find(forge.path), Inspector()).look(forge.main(), [bomb]) == {}
