"""What of a person's own is lent to a gate."""

from __future__ import annotations

from pathlib import Path

from covey.runners.tools import caches, installed, secrets


def test_only_caches_that_are_there_are_lent(tmp_path: Path) -> None:
    for name in (".npm", ".cargo", "elsewhere", ".cache/pip"):
        (tmp_path / name).mkdir(parents=True)
    env = {"HOME": str(tmp_path), "UV_CACHE_DIR": f"{tmp_path}/elsewhere", "GOCACHE": "off",
           "PIP_CACHE_DIR": f"{tmp_path}/.cache/pip"}  # fmt: skip
    assert set(caches(env)) == {str(tmp_path / name) for name in (".npm", ".cargo", "elsewhere", ".cache")}


def test_a_home_is_never_lent_as_a_cache(tmp_path: Path) -> None:
    assert caches({"HOME": str(tmp_path), "XDG_CACHE_HOME": str(tmp_path), "CARGO_HOME": "/"}) == ()
    assert caches({}) == ()


def test_tools_are_found_by_their_places_variables_and_path(tmp_path: Path) -> None:
    home = tmp_path / "home"
    for name in (
        ".pyenv/shims",
        ".local/bin",
        ".local/share/tool/bin",
        "venv/bin",
        "shop/bin",
        ".ssh",
        "jdk",
        "base/bin",
    ):
        (home / name).mkdir(parents=True)
    (home / ".local/share/tool/bin/run").touch()
    (home / ".local/bin/run").symlink_to("../share/tool/bin/run")
    (home / "venv/pyvenv.cfg").write_text(f"home = {home}/base/bin\n")
    path = f"{home}/.local/bin:{home}/venv/bin:{home}/shop/bin:{home}:/usr/bin"
    env = {"HOME": str(home), "PATH": path, "JAVA_HOME": f"{home}/jdk"}
    found = {str(Path(each).relative_to(home)) for each in installed(env, [], [f"{home}/shop"])}
    wanted = {".pyenv", ".local/bin", ".local/share/tool", "venv", "venv/bin", "base", "base/bin", "shop/bin", "jdk"}
    assert wanted <= found
    assert not found & {".", "shop", ".ssh", ".local", ".local/share"}


def test_secrets_among_the_caches_are_known(tmp_path: Path) -> None:
    (tmp_path / ".cargo").mkdir()
    (tmp_path / ".cargo" / "credentials.toml").touch()
    assert secrets({"HOME": str(tmp_path)}) == (str(tmp_path / ".cargo" / "credentials.toml"),)
