"""The kept values of a run: where they are, whether they are intact, and what they are."""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from headrace.model.errors import BadFile, HeadraceError
from headrace.record.private import private_folder
from headrace.runtime.durable import write_whole
from headrace.runtime.file_trees import remove_tree
from headrace.runtime.kept_files import (
    KEY_BYTES,
    TOKEN_FILE,
    Kept,
    folder_token,
    load_kept,
    sealed_parts,
    staged_problem,
)

KEY_FILE = "key"


@dataclass(frozen=True)
class KeptFolder:
    """The kept files of one run, and the key that seals them."""

    run: str
    folder: Path
    key: bytes

    def create(self) -> None:
        """Make the folder, with a token by which a worker knows that it sees this very folder."""
        private_folder(self.folder)
        if not (self.folder / TOKEN_FILE).exists():
            write_whole(self.folder / TOKEN_FILE, [folder_token(self.key).encode()], mode=0o600)

    def load(self, kept: Kept) -> Any:
        """The value; BadFile if it is missing or damaged."""
        return load_kept(kept, self.folder, self.key, self.run)

    def parts(self, kept: Kept) -> list[memoryview]:
        """The pickle, verified."""
        return sealed_parts(kept, self.folder, self.key, self.run)

    def problem(self, kept: Kept) -> str:
        """What is wrong with a kept value; "" if it is intact. O(bytes)."""
        try:
            self.parts(kept)
            if kept.is_staged:
                return staged_problem(kept, self.folder, self.key, self.run)
        except HeadraceError as error:
            return error.problem
        return ""

    def intact(self, all_kept: Iterable[Kept], say: Callable[[str], None]) -> list[Kept]:
        """Those that are as they were committed; the others are named."""
        good = []
        for kept in all_kept:
            problem = self.problem(kept)
            if problem:
                say(f"item {kept.item!r} is lost, and is made again if it is needed: {problem}")
            else:
                good.append(kept)
        return good

    def drop_others(self, all_kept: Iterable[Kept]) -> None:
        """Remove files that were never committed, or replaced since."""
        committed = {kept.file for kept in all_kept} | {TOKEN_FILE}
        with suppress(OSError):
            for path in list(self.folder.iterdir()):
                if path.name not in committed:
                    remove_tree(path)


def record_key(folder: Path) -> bytes:
    """The secret key of a record, made on first use.

    Raises
    ------
    BadFile
        If the file is another user's or not a key: what it seals cannot be trusted.
    """
    path = folder / KEY_FILE
    if not path.exists():
        scratch = folder / f".{KEY_FILE}-{secrets.token_hex(8)}"
        write_whole(scratch, [secrets.token_bytes(KEY_BYTES)], mode=0o600)
        with suppress(FileExistsError):  # another process was faster: its key is the record's
            os.link(scratch, path)
        scratch.unlink()
    try:
        about = path.lstat()
        key = path.read_bytes()
    except OSError as error:
        raise _bad_key(path, f"cannot be read: {error.strerror}") from None
    if about.st_uid != os.geteuid():
        raise _bad_key(path, "belongs to another user")
    if len(key) != KEY_BYTES or about.st_mode & 0o077:
        raise _bad_key(path, f"is not a key of {KEY_BYTES} bytes that only you can read")
    return key


def _bad_key(path: Path, problem: str) -> BadFile:
    return BadFile(
        f"the record's key {problem}", where=str(path), hint="remove it: kept data is then made again"
    )
