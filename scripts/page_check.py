"""Check the page's types with tsc, and what its templates give to components as well.

tsc does not look into a template, so it reads copies in which `<${Words} text=${title} />` of an html`` template is
written as a call, `${__component(Words, { text: title })}`. A call stays on the lines of its tag, so an error is where
it says. Elements of HTML are left as they are: nothing declares what these take.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
CODE = "src/covey/web/page/js"
TSC = ROOT / ".cache" / "page-tools" / "bin" / "tsc"
DECLARED = """\
/** Takes what a tag gives to a component: all that it needs and nothing that it does not know. */
declare function __component<Given>(
  component: (given: Given) => unknown,
  given: NoInfer<Given> & { key?: unknown; ref?: unknown },
): import("./vendor/preact.js").VNode;
/** What stands between a tag and its end. */
declare const __children: any;
"""

_CODE = re.compile(r"[^/\"'`{}]+")
_STRING_OR_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/|\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])*'", re.DOTALL)
_REGEX = re.compile(r"/(?:\\.|\[(?:\\.|[^\]\\\n])*\]|[^/\\\[\n])+/[a-z]*")
_BEFORE_REGEX = re.compile(r"(?:[(,=:\[!&|?{;+\-*%<>~^]|\b(?:return|typeof|case))\s*$")
_TEXT = re.compile(r"(?:\\.|\$(?!\{)|[^`$\\])*", re.DOTALL)
_SPACE = re.compile(r"\s*")
_NAME = re.compile(r"[\w:-]+")
_BARE = re.compile(r"[^\s/>]+")
_QUOTED = re.compile(r"[^\"$]*")


class Rewriter:
    """One module, read once from its beginning to its end."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0

    def code(self) -> str:
        """Return the code from here to the brace that closes it, or to the end, with its templates rewritten."""
        written: list[str] = []
        depth = 0
        while self._at < len(self._text):
            character = self._text[self._at]
            depth += (character == "{") - (character == "}")
            if depth < 0:
                break
            written.append(self._template() if character == "`" else self._token())
        return "".join(written)

    def _token(self) -> str:
        """Return the next string, comment, regular expression, run of plain code, or single character."""
        found = self._take(_STRING_OR_COMMENT)
        if not found and _BEFORE_REGEX.search(self._text, max(0, self._at - 40), self._at):
            found = self._take(_REGEX)
        return found or self._take(_CODE) or self._skip(1)

    def _template(self) -> str:
        is_markup = self._text.endswith("html", 0, self._at)
        written = self._skip(1)
        while True:
            text = self._take(_TEXT)
            if self._here("`"):
                return written + text + self._skip(1)
            if is_markup and text.endswith("<"):
                written += text[:-1] + self._component()
            else:
                written += text + "${" + self._hole() + "}"

    def _hole(self) -> str:
        """Return the code of the ${...} that begins here, and go behind it."""
        self._skip(2)
        inside = self.code()
        self._skip(1)
        return inside

    def _component(self) -> str:
        """Return the tag that begins here as a call, up to the end of the tag."""
        written = "${__component(" + self._hole() + ", {"
        while True:
            written += self._take(_SPACE)
            if self._here("/>"):
                self._skip(2)
                return written + "})}"
            if self._here(">"):
                self._skip(1)
                return written + "children: __children })}"
            written += self._attribute() + ","

    def _attribute(self) -> str:
        if self._here("...${"):
            self._skip(3)
            return f"...({self._hole()})"
        name = self._take(_NAME)
        if not name:
            raise ValueError(f"not an attribute: {self._text[self._at : self._at + 60]!r}")
        if not self._here("="):
            return f"{json.dumps(name)}: true"
        self._skip(1)
        return f"{json.dumps(name)}: {self._value()}"

    def _value(self) -> str:
        if self._here("${"):
            return f"({self._hole()})"
        if not self._here('"'):
            return json.dumps(self._take(_BARE))
        self._skip(1)
        written = self._take(_QUOTED)
        if self._here('"'):
            self._skip(1)
            return json.dumps(written)
        while not self._here('"'):
            written += "${" + self._hole() + "}" + self._take(_QUOTED)
        self._skip(1)
        return f"`{written}`"

    def _here(self, text: str) -> bool:
        return self._text.startswith(text, self._at)

    def _skip(self, count: int) -> str:
        self._at += count
        return self._text[self._at - count : self._at]

    def _take(self, pattern: re.Pattern[str]) -> str:
        found = pattern.match(self._text, self._at)
        return self._skip(len(found[0])) if found else ""


def copy(folder: Path) -> None:
    """Write the copies that tsc reads, laid out like the repository."""
    shutil.copytree(ROOT / "types", folder / "types")
    shutil.copy(ROOT / "tsconfig.json", folder)
    (folder / "types" / "components.d.ts").write_text(DECLARED)
    for module in (ROOT / CODE).rglob("*.js"):
        target = folder / module.relative_to(ROOT)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(Rewriter(module.read_text()).code())


def main() -> int:
    """Check the page; tsc names a file by its path below the copies, which is that in the repository."""
    with tempfile.TemporaryDirectory(prefix="covey-page-check-") as made:
        copy(Path(made))
        return subprocess.run([TSC], cwd=made, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
