"""The page's own files: found in a table, sent with headers that let nothing else in."""

from __future__ import annotations

import asyncio
import gzip
import hashlib
from pathlib import Path

from covey import __version__
from covey.values import dataclass
from covey.web.asgi import Headers

FOLDER = Path(__file__).parent / "page"
SMALL = 1024
"""Files up to this many bytes are not worth compressing."""
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; font-src 'self'; "
    "connect-src 'self'; manifest-src 'self'; worker-src 'self'; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'"
)
HEADERS = [
    (b"content-security-policy", POLICY.encode()),
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"permissions-policy", b"camera=(), geolocation=(), microphone=(), payment=(), usb=()"),
    (b"cache-control", b"no-cache"),
    (b"vary", b"accept-encoding"),
    (b"covey-version", __version__.encode()),
]
"""What every answer with a file says."""
TYPES = {
    ".css": "text/css; charset=utf-8",
    ".html": "text/html; charset=utf-8",
    ".ico": "image/x-icon",
    ".js": "text/javascript; charset=utf-8",
    ".json": "application/json",
    ".md": "text/plain; charset=utf-8",
    ".png": "image/png",
    ".svg": "image/svg+xml",
    ".txt": "text/plain; charset=utf-8",
    ".webmanifest": "application/manifest+json",
    ".woff2": "font/woff2",
}
_PACKED = (".png", ".woff2")


@dataclass(frozen=True)
class File:
    """A file as it is sent: plain, compressed if that is shorter, and its ETag."""

    kind: bytes
    plain: bytes
    packed: bytes | None
    mark: bytes
    stamp: tuple[int, int]


@dataclass(frozen=True)
class Sent:
    """An answer with a file, or without one if the browser has it."""

    status: int
    headers: list[tuple[bytes, bytes]]
    body: bytes


class Pages:
    """The files of one folder, by the paths under which they are asked for; what is not in the table is not there."""

    def __init__(self, folder: Path = FOLDER) -> None:
        found = (path for path in folder.rglob("*") if path.suffix in TYPES and path.is_file())
        self.paths = {f"/{path.relative_to(folder).as_posix()}": path for path in sorted(found)}
        """Where each file lies, by the path under which it is asked for."""
        if "/index.html" in self.paths:
            self.paths["/"] = self.paths["/index.html"]
        self._files: dict[Path, File] = {}

    async def answer(self, path: str, headers: Headers) -> Sent:
        """Return the answer with the file of a path that is in the table."""
        file = await self._file(self.paths[path])
        mark = [(b"etag", file.mark)]
        asked = [part.strip().removeprefix(b"W/") for part in headers.get(b"if-none-match", b"").split(b",")]
        if file.mark in asked:
            return Sent(304, [*HEADERS, *mark], b"")
        body, packed = file.plain, []
        if file.packed is not None and _takes_gzip(headers):
            body, packed = file.packed, [(b"content-encoding", b"gzip")]
        about = [(b"content-type", file.kind), (b"content-length", b"%d" % len(body))]
        return Sent(200, [*about, *packed, *HEADERS, *mark], body)

    async def _file(self, path: Path) -> File:
        """Return a file, read when it is first asked for, and again when it was changed."""
        known = self._files.get(path)
        if known is None or known.stamp != _stamp(path):
            known = self._files[path] = await asyncio.to_thread(_read, path)
        return known


def _takes_gzip(headers: Headers) -> bool:
    names = [part.strip().replace(b" ", b"") for part in headers.get(b"accept-encoding", b"").lower().split(b",")]
    return any(name.partition(b";")[0] == b"gzip" and name != b"gzip;q=0" for name in names)


def _stamp(path: Path) -> tuple[int, int]:
    found = path.stat()
    return found.st_mtime_ns, found.st_size


def _read(path: Path) -> File:
    stamp, plain = _stamp(path), path.read_bytes()
    packed = None
    if len(plain) > SMALL and path.suffix not in _PACKED:
        packed = gzip.compress(plain, mtime=0)
        packed = packed if len(packed) < len(plain) else None
    mark = b'"%s"' % hashlib.sha256(plain).hexdigest()[:32].encode()
    return File(TYPES[path.suffix].encode(), plain, packed, mark, stamp)
