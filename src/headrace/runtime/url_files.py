"""Files and folders at URLs, fetched in chunks: http(s) by the standard library, everything else by fsspec.

A folder is a URL that ends with a slash, where the storage can list one.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from headrace.model.errors import HeadraceError, TaskFailed, UsageError
from headrace.model.safe_path import safe_path
from headrace.runtime.file_trees import CHUNK

_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*(::[A-Za-z][A-Za-z0-9+.-]*)*://")
_HTTP = ("http", "https")
_SECONDS = 60.0
"""How long to wait for a server that says nothing."""
_PACKAGE = re.compile(r"[Ii]nstall (?:the )?[\"'`]?([A-Za-z0-9_.-]+)")


def is_url(path: str) -> bool:
    """
    >>> is_url("https://a.org/x"), is_url("simplecache::s3://b/x"), is_url("C:/x"), is_url("a/b")
    (True, True, False, False)
    """
    return _URL.match(path) is not None


def name_of_url(url: str) -> str:
    """The last part of its path.

    >>> name_of_url("https://a.org/x/image%201.png?size=3"), name_of_url("s3://bucket/folder/")
    ('image 1.png', 'folder')
    """
    path = urlsplit(url.rpartition("::")[2]).path.rstrip("/")
    return unquote(path.rpartition("/")[2]) or "data"


def require_known(url: str, where: str) -> None:
    """Raise UsageError if no installed package can read such URLs, as far as this process can tell."""
    protocol = url.partition("://")[0].partition("::")[0]
    if protocol in _HTTP:
        return
    import fsspec  # type: ignore[import-untyped]

    try:
        fsspec.get_filesystem_class(protocol)
    except ImportError as error:
        raise UsageError(f"{url!r} cannot be read: {error}", where=where, hint=_missing(error)) from None
    except ValueError:
        raise UsageError(
            f"{url!r} cannot be read: {protocol}:// is unknown", where=where, hint="check the URL"
        ) from None


def fetch_url(url: str, target: Path) -> None:
    """Write what is at a URL to a new file or folder.

    Raises
    ------
    TaskFailed
        If it cannot be read or written, or the package that reads such URLs is not installed.

    >>> import tempfile, fsspec
    >>> fsspec.filesystem("memory").pipe("/folder/a", b"abc")
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     fetch_url("memory://folder/", Path(folder) / "x")
    ...     (Path(folder) / "x" / "a").read_bytes()
    b'abc'
    """
    where = f"input {url!r}"
    try:
        if url.partition("://")[0] in _HTTP:
            import urllib.request  # here: it takes long to load

            with urllib.request.urlopen(url, timeout=_SECONDS) as source:  # redirects lead to http(s) only
                _copy(source, target, source.length)
            return
        import fsspec

        storage, root = fsspec.core.url_to_fs(url)
        for path, name in _files(storage, root, url.endswith("/")):
            place = target / safe_path(name) if name else target
            place.parent.mkdir(parents=True, exist_ok=True)
            with storage.open(path, "rb", block_size=CHUNK) as source:
                _copy(source, place, None)
    except HeadraceError as error:
        raise TaskFailed(error.problem, where=where, hint=error.hint) from None
    except ImportError as error:
        raise TaskFailed(str(error), where=where, hint=f"{_missing(error)} on the workers") from None
    except Exception as error:  # every storage has errors of its own
        raise TaskFailed(
            f"it cannot be fetched: {type(error).__name__}: {error}", where=where, hint="check the URL"
        ) from None


def _files(storage: Any, root: str, folder: bool) -> Iterator[tuple[str, str]]:
    """Paths in a storage, each with its name in the folder; "" for a single file."""
    if not folder:
        yield root, ""
        return
    top = root.rstrip("/")
    found = sorted(storage.find(top))
    if not found:
        raise TaskFailed("the folder is empty or does not exist", hint="check the URL")
    for path in found:
        if not path.startswith(f"{top}/"):
            raise TaskFailed(f"{path!r} is not in {top!r}")
        yield path, path[len(top) + 1 :]


def _copy(source: Any, target: Path, expected: int | None) -> None:
    size = 0
    with target.open("xb") as file:
        while part := source.read(CHUNK):
            file.write(part)
            size += len(part)
    if expected is not None and size != expected:
        raise TaskFailed(f"{size} of {expected} bytes were sent", hint="try again")


def _missing(error: ImportError) -> str:
    """What to install.

    >>> _missing(ImportError("Install s3fs to access S3"))
    'install s3fs'
    """
    named = _PACKAGE.search(str(error))
    package = named[1] if named is not None else error.name
    return f"install {package}" if package else "install the package that reads such URLs"
