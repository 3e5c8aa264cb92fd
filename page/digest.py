"""Whether the built page belongs to its sources: python page/digest.py [--write].

`make page` writes digests of the sources and of what was built from them beside the built page. This compares them; it
needs no Node.
"""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Iterable
from pathlib import Path

ROOT = Path(__file__).parents[1]
KEPT = ROOT / "src" / "headrace" / "ui" / "static" / "digests.txt"
_SOURCES = ("src/**/*", "index.html", "*.ts", "package.json", "package-lock.json", "tsconfig.json")


def digest(files: Iterable[Path]) -> str:
    """Of names and contents, whatever the order of the files."""
    total = hashlib.sha256()
    for path in sorted(file for file in files if file.is_file()):
        content = hashlib.sha256(path.read_bytes()).hexdigest()
        total.update(f"{path.relative_to(ROOT).as_posix()} {content}\n".encode())
    return total.hexdigest()


def digests() -> str:
    """What the file beside the built page should say."""
    sources = [path for pattern in _SOURCES for path in (ROOT / "page").glob(pattern)]
    built = [path for path in KEPT.parent.rglob("*") if path != KEPT]
    built += (ROOT / "src" / "headrace" / "report" / "static").rglob("*")
    return f"sources {digest(sources)}\nbuilt {digest(built)}\n"


def main() -> int:
    """Write the digests, or say whether they are right."""
    if "--write" in sys.argv[1:]:
        KEPT.write_text(digests(), encoding="utf-8")
        return 0
    if KEPT.is_file() and KEPT.read_text(encoding="utf-8") == digests():
        return 0
    print("the built page does not belong to its sources: run `make page` and commit what it builds")
    return 1


if __name__ == "__main__":
    sys.exit(main())
