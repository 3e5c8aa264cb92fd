"""Questions to workers that may be frozen, cut off or about to die: whoever does not answer in time is left out."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from headrace.model.errors import HeadraceError

PATIENCE = 20.0
"""Seconds to wait for an answer."""


def ask_workers(
    client: Any,
    function: Callable[..., Any],
    questions: Iterable[str] | Mapping[str, tuple[Any, ...]],
    patience: float = PATIENCE,
) -> dict[str, Any]:
    """Call a function on workers, given by address, all at the same time; returns the answers by address.

    `questions` may map each address to the function's arguments there. The function may be a coroutine, and receives
    the worker if it has a parameter `dask_worker`. Workers that are gone, fail, or do not answer within `patience`
    seconds are left out.
    """
    each = dict(questions) if isinstance(questions, Mapping) else dict.fromkeys(questions, ())
    try:
        return dict(client.sync(_ask_all, client, function, each, patience))
    except ImportError as error:
        raise HeadraceError(
            f"a worker cannot load headrace: {error}",
            where="cluster",
            hint="install the same version of headrace for the scheduler and the workers",
        ) from error


async def _ask_all(
    client: Any, function: Callable[..., Any], questions: Mapping[str, tuple[Any, ...]], patience: float
) -> dict[str, Any]:
    answers = await asyncio.gather(
        *(_ask(client, function, address, given, patience) for address, given in questions.items()),
        return_exceptions=True,
    )
    found = {}
    for address, answer in zip(questions, answers, strict=True):
        if isinstance(answer, ImportError):
            raise answer
        if not isinstance(answer, BaseException):  # the engine has many ways to say that a worker is gone
            found[address] = answer
    return found


async def _ask(
    client: Any, function: Callable[..., Any], address: str, given: tuple[Any, ...], patience: float
) -> Any:
    # Inside the client's loop it returns an awaitable.
    answers = await asyncio.wait_for(client.run(function, *given, workers=[address]), patience)
    return answers[address]
