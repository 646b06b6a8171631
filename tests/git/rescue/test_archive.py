"""Kept folders come back as they were, and only below where they are put."""

from __future__ import annotations

import io
import os
import tarfile
from pathlib import Path

import pytest

from covey.errors import ToolFailed
from covey.git.rescue.archive import read_tar, write_tar


def _entry(name: str, kind: bytes = tarfile.REGTYPE, link: str = "") -> tarfile.TarInfo:
    entry = tarfile.TarInfo(name)
    entry.type, entry.linkname = kind, link
    return entry


def test_modes_and_links_come_back_as_they_were(tmp_path: Path) -> None:
    source, target = tmp_path / "source", tmp_path / "target"
    (source / "kept").mkdir(parents=True)
    target.mkdir()
    (source / "kept/shared").write_text("all may write\n")
    (source / "kept/shared").chmod(0o666)
    (source / "kept/away").symlink_to("/etc/hostname")
    assert write_tar(tmp_path / "kept.tar", source, [b"kept"]) == []
    read_tar((tmp_path / "kept.tar").read_bytes(), target)
    assert (target / "kept/shared").stat().st_mode & 0o777 == 0o666
    assert os.readlink(target / "kept/away") == "/etc/hostname"


@pytest.mark.parametrize(
    "entries",
    [
        [_entry("../elsewhere")],
        [_entry("way", tarfile.SYMTYPE, ".."), _entry("way/elsewhere")],
        [_entry("elsewhere", tarfile.LNKTYPE, "../elsewhere")],
    ],
    ids=["by its name", "through a link", "as another name of a file"],
)
def test_nothing_is_put_outside(tmp_path: Path, entries: list[tarfile.TarInfo]) -> None:
    target = tmp_path / "target"
    target.mkdir()
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as tar:
        for entry in entries:
            tar.addfile(entry)
    with pytest.raises(ToolFailed, match="A kept folder"):
        read_tar(packed.getvalue(), target)
    assert not (tmp_path / "elsewhere").exists()
