"""What the site has beyond the texts of docs/: the texts of the root, pages for the files that texts link to, and
formulas as MathML, so that pages need neither scripts nor other machines."""

from __future__ import annotations

import posixpath
import re
from html import unescape
from pathlib import Path
from typing import Any

import latex2mathml.converter
from mkdocs.structure.files import File, Files, InclusionLevel

ROOT = Path(__file__).parents[2]
TEXTS = {
    "README.md": "index.md",
    "CHANGELOG.md": "CHANGELOG.md",
    "CONTRIBUTING.md": "CONTRIBUTING.md",
    "SECURITY.md": "SECURITY.md",
}
"""Texts of the root and the names of their pages."""
LINK = re.compile(r"(!?\[[^\]]*\]\()([^)\s#]+)(#[^)\s]*)?\)")
FENCE = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
FORMULA = re.compile(r'<(span|div) class="arithmatex">\\([(\[])(.*?)\\[)\]]</\1>', re.DOTALL)
LANGUAGES = {
    ".py": "python",
    ".toml": "toml",
    ".ini": "ini",
    ".rules": "sql",
    ".json": "json",
    ".ipynb": "json",
}


def on_files(files: Files, config: Any) -> Files:
    """Add the texts of the root, and every file outside docs/ that a text links to."""
    for name, page in TEXTS.items():
        files.append(File.generated(config, page, content=(ROOT / name).read_text()))
    wanted = {target for file in files.documentation_pages() for target in _outside(file)}
    listed: set[Path] = set()
    for target in sorted(wanted - TEXTS.keys()):
        path = ROOT / target
        shown = sorted(file for file in path.iterdir() if file.is_file()) if path.is_dir() else [path]
        listed.update(shown)
        if path.is_dir():
            rows = "".join(f"- [{file.name}]({file.name}.md)\n" for file in shown)
            files.append(_page(config, f"{_listing(target)}/index.md", f"# {target}\n\n{rows}"))
    for file in sorted(listed):
        name = file.relative_to(ROOT).as_posix()
        files.append(_page(config, f"{_listing(name)}.md", f"# {name}\n\n{_fenced(file)}"))
    return files


def _page(config: Any, uri: str, text: str) -> File:
    """A page that is linked to, but neither in the menu nor found by the search."""
    content = f"---\nsearch:\n  exclude: true\n---\n\n{text}"
    return File.generated(config, uri, content=content, inclusion=InclusionLevel.NOT_IN_NAV)


def _fenced(path: Path) -> str:
    return f"````{LANGUAGES.get(path.suffix, 'text')}\n{path.read_text()}````\n"


def on_page_markdown(markdown: str, page: Any, config: Any, files: Files) -> str:
    """Let links lead to where their targets are on the site."""
    if page.file.src_uri.startswith("files/"):
        return markdown
    source = _source(page.file.src_uri)
    here = posixpath.dirname(page.file.src_uri)
    parts, end = [], 0
    for fence in FENCE.finditer(markdown):
        parts += [_with_links(markdown[end : fence.start()], source, here), fence.group()]
        end = fence.end()
    return "".join(parts) + _with_links(markdown[end:], source, here)


def on_page_content(html: str, page: Any, config: Any, files: Files) -> str:
    """Formulas as MathML."""

    def mathml(found: re.Match[str]) -> str:
        display = "block" if found.group(2) == "[" else "inline"
        return str(latex2mathml.converter.convert(unescape(found.group(3)).strip(), display=display))

    return FORMULA.sub(mathml, html)


def _source(page: str) -> str:
    """The file that a page is made from, relative to the root."""
    return next((name for name, made in TEXTS.items() if made == page), f"docs/{page}")


def _site_path(target: str) -> str:
    """Where a file of the repository is on the site."""
    if target in TEXTS:
        return TEXTS[target]
    folder = (ROOT / target).is_dir()
    if target.startswith("docs/"):
        inside = target.removeprefix("docs/")
        return f"{inside}/README.md" if folder else inside
    return f"{_listing(target)}/index.md" if folder else f"{_listing(target)}.md"


def _listing(target: str) -> str:
    return f"files/{target}"


def _with_links(text: str, source: str, here: str) -> str:
    def moved(found: re.Match[str]) -> str:
        start, link, fragment = found.group(1), found.group(2), found.group(3) or ""
        if "://" in link or link.startswith("mailto:"):
            return found.group()
        target = posixpath.normpath(posixpath.join(posixpath.dirname(source), link))
        return f"{start}{posixpath.relpath(_site_path(target), here or '.')}{fragment})"

    return LINK.sub(moved, text)


def _outside(file: File) -> set[str]:
    """The files outside docs/ that a text links to, relative to the root."""
    source = _source(file.src_uri)
    found = set()
    for _, link, _ in LINK.findall(FENCE.sub("", file.content_string)):
        target = posixpath.normpath(posixpath.join(posixpath.dirname(source), link))
        if "://" not in link and not target.startswith(("docs/", "..")):
            found.add(target)
    return found
