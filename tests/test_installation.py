"""One file is all of covey on a PATH, and whoever it starts finds the user's own tools."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import sysconfig
import venv
from collections.abc import Callable
from importlib import metadata
from pathlib import Path

import pytest

from covey.installation import launcher, path_mark, put_launcher, users_environment

CHECKOUT = Path(__file__).parent.parent
OWN = f"{sys.prefix}/bin"
SPELLINGS: dict[str, Callable[[Path], str]] = {
    "plain": lambda _: OWN,
    "with a slash": lambda _: f"{OWN}/",
    "over a link": lambda folder: _link(folder / "link", sys.prefix) + "/bin",
    "a link itself": lambda folder: _link(folder / "link", OWN),
}


def _link(place: Path, target: str) -> str:
    place.symlink_to(target)
    return str(place)


@pytest.mark.parametrize("spelt", SPELLINGS.values(), ids=SPELLINGS)
def test_what_is_on_a_path_for_covey_alone_is_not_passed_on(tmp_path: Path, spelt: Callable[[Path], str]) -> None:
    env = {"PATH": f"{spelt(tmp_path)}:/opt/mine/bin:/usr/bin", "VIRTUAL_ENV": sys.prefix, "HOME": "/home/ada"}
    env["VIRTUAL_ENV_PROMPT"] = "(covey)"
    assert users_environment(env, tmp_path) == {"PATH": "/opt/mine/bin:/usr/bin", "HOME": "/home/ada"}


def test_an_environment_of_the_user_stays(tmp_path: Path) -> None:
    env = {"PATH": f"{tmp_path}/venv/bin:.venv/bin::/usr/bin", "VIRTUAL_ENV": f"{tmp_path}/venv"}
    assert users_environment(env, tmp_path) == env
    assert users_environment({"PATH": OWN}, tmp_path) == {"PATH": os.defpath}
    assert users_environment({}, tmp_path) == {}
    own = {"PATH": f"{OWN}:/usr/bin", "VIRTUAL_ENV": sys.prefix}
    assert users_environment(own, Path(sys.prefix).parent) == own  # who works on covey itself has its tools there


def test_a_virtual_environment_with_nothing_but_covey_is_covey_s_and_any_other_its_user_s(tmp_path: Path) -> None:
    place = tmp_path / "venv"
    venv.create(place, with_pip=False, symlinks=True)
    (packages,) = place.glob("lib/python*/site-packages")
    (packages / "covey").symlink_to(CHECKOUT / "src" / "covey")
    installed = Path(sysconfig.get_path("purelib"))
    for name in ("covey", "uvicorn", "click", "h11"):
        source = next(installed.glob(f"{metadata.distribution(name).name}-*.dist-info"))
        shutil.copytree(source, packages / source.name)

    def passed_on() -> str:
        code = (
            "import json, os, pathlib, sys\nfrom covey.installation import step_back\n"
            f"step_back(pathlib.Path({str(tmp_path / 'project')!r}))\nprint(json.dumps(os.environ['PATH']))"
        )
        path = f"{place}/bin:/usr/bin"
        done = subprocess.run(
            [place / "bin" / "python", "-c", code], env={"PATH": path}, capture_output=True, text=True, check=True
        )
        return str(json.loads(done.stdout))

    assert passed_on() == "/usr/bin"
    (packages / "pytest-9.dist-info").mkdir()
    (packages / "pytest-9.dist-info" / "METADATA").write_text("Metadata-Version: 2.1\nName: pytest\nVersion: 9\n")
    assert passed_on() == f"{place}/bin:/usr/bin"


def test_the_launcher_calls_this_covey_whatever_lies_around_it(tmp_path: Path) -> None:
    (tmp_path / "covey").mkdir()
    for name in ("covey/__init__.py", "json.py"):
        (tmp_path / name).write_text("raise SystemExit('a file of the user was run')\n")
    path = put_launcher(tmp_path / "a 'quoted' folder")
    env = {"PATH": "/nowhere", "PYTHONPATH": str(tmp_path), "PYTHONHOME": "/nowhere"}
    done = subprocess.run([path, "--version"], cwd=tmp_path, env=env, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout.split()[0], done.stderr) == (0, "covey", "")
    path.write_text("#!/bin/sh\nexit 7\n")
    assert put_launcher(path.parent).read_text() == launcher()


def _install(home: Path, path: str, named: str = "") -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, CHECKOUT / "scripts" / "install.py", named],
        env={"HOME": str(home), "PATH": path}, capture_output=True, text=True, check=False,
    )  # fmt: skip


def test_install_puts_one_file_into_the_user_s_bin_and_nothing_over_what_is_not_ours(tmp_path: Path) -> None:
    home, local = tmp_path, tmp_path / ".local" / "bin"
    done = _install(home, "/usr/bin:/bin")
    assert (done.returncode, done.stderr) == (0, "")
    assert f'export PATH="{local}:$PATH"' in done.stdout
    assert [each.name for each in local.iterdir()] == ["covey"]
    again = _install(home, f"{OWN}:{local}:/usr/bin")
    assert again.returncode == 0 and "export PATH" not in again.stdout
    assert f"{OWN} is on your PATH" in again.stdout  # what the README once said to do
    (home / "bin").mkdir()
    (home / "bin" / "covey").write_text("#!/bin/sh\n# somebody else's\n")
    refused = _install(home, "/usr/bin", str(home / "bin"))
    assert refused.returncode == 1 and "was not made by make install" in refused.stderr
    assert "somebody else's" in (home / "bin" / "covey").read_text()
    (home / "bin" / "covey").chmod(0o755)
    second = _install(home, f"{home}/bin:{local}:/usr/bin")
    assert f"{home}/bin/covey comes before it" in second.stdout


def test_what_stands_for_a_path_is_another_where_other_folders_come_or_in_another_order() -> None:
    mark = path_mark({"PATH": "/a:/b"})
    assert mark == path_mark({"PATH": "/a:/b:/a", "HOME": "/home/ada"})
    assert len({mark, path_mark({"PATH": "/b:/a"}), path_mark({"PATH": "/a"}), path_mark({})}) == 4
