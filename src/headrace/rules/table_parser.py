"""A driver for the tables that lark makes of a grammar: the same parser with fewer steps per token.

Most steps in an expression grammar rename a symbol (an atom is a factor, a factor is a term) and change no value. Here
such a step is one look-up, and the functions that build the tree get their arguments without lark's layers of filters.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import itemgetter
from sys import intern
from typing import Any, TypeAlias

from lark import Lark, Token
from lark.grammar import Rule

Build: TypeAlias = Callable[[list[Any]], Any]
Action: TypeAlias = int | tuple[str, int, Build | None]
"""The next state; or the symbol that replaces so many on the stack and how its value is made of theirs, None if it is
the value of the only one."""


class NotAccepted(Exception):
    """The tokens are not a sentence of the grammar. Lark's own parser tells where and why."""


class TableParser:
    """The parser of `lark`, with the methods of `builder` in place of lark's transformer.

    >>> class Builder:
    ...     def start(self, *names):
    ...         return " ".join(names)
    >>> lark = Lark('start: NAME (_COMMA NAME)*\\nNAME: "a".."z"\\n_COMMA: ","', parser="lalr")
    >>> TableParser(lark, Builder()).parse([Token("NAME", "a"), Token("_COMMA", ","), Token("NAME", "b")])
    'a b'
    """

    def __init__(self, lark: Lark, builder: object) -> None:
        parser: Any = lark.parser
        table, start = parser.parser._parse_table, lark.options.start[0]
        self._start, self._end = table.start_states[start], table.end_states[start]
        reductions: dict[Rule, Action] = {}
        for row in table.states.values():
            for _, target in row.values():
                if isinstance(target, Rule) and target not in reductions:
                    origin = _name(target.origin.name)
                    reductions[target] = (origin, len(target.expansion), _build(target, builder))
        self._rows: dict[int, dict[str, Any]] = {
            state: {_name(symbol): reductions.get(target, target) for symbol, (_, target) in row.items()}
            for state, row in table.states.items()
        }
        self._after: dict[tuple[int, str, str], int] = {}

    def parse(self, tokens: Sequence[Token]) -> Any:
        """The value of a sentence. Time is linear in the number of tokens.

        Raises
        ------
        NotAccepted
            If the tokens are not a sentence of the grammar.
        """
        rows, after, state = self._rows, self._after, self._start
        states: list[int] = [state]
        values: list[Any] = []
        for token in (*tokens, Token("$END", "")):
            kind = token.type
            while (action := rows[state].get(kind)).__class__ is tuple:
                origin, size, build = action
                if build is not None:
                    children = values[-size:]
                    del values[-size:], states[-size:]
                    values.append(build(children))
                else:
                    states.pop()
                step = (states[-1], origin, kind)
                state = after[step] if step in after else self._renamed(*step)
                states.append(state)
                if state == self._end:
                    return values[-1]
            if action is None:
                raise NotAccepted
            state = action
            states.append(state)
            values.append(token)
        raise NotAccepted

    def _renamed(self, below: int, symbol: str, kind: str) -> int:
        """The state after a symbol on top of a state, with all renaming that a token of this kind asks for."""
        state: int = self._rows[below][symbol]
        while state != self._end:
            action = self._rows[state].get(kind)
            if action.__class__ is not tuple or action[2] is not None:
                break
            state = self._rows[below][action[0]]
        self._after[below, symbol, kind] = state
        return state


def _name(symbol: str) -> str:
    """As a plain string: lark's names are tokens, which take long to compare."""
    return intern(str(symbol))


def _build(rule: Rule, builder: object) -> Build | None:
    """How the value of a rule is made of the values of its symbols.

    As in lark: tokens whose names begin with an underscore are left out, as are optional parts that are absent unless
    in brackets (None); the parts of rules whose names begin with an underscore belong to the rule that uses them.
    """
    spread = {i for i, symbol in enumerate(rule.expansion) if not symbol.is_term and symbol.name[0] == "_"}
    places = _places(rule)
    if rule.origin.name[0] == "_":
        return _gathering(places, spread, list)
    if rule.options.expand1 and rule.alias is None and len(places) == 1 and not spread:
        return None if len(rule.expansion) == 1 else itemgetter(places[0])
    method: Callable[..., Any] = getattr(builder, rule.alias or rule.origin.name)
    if spread:
        return _gathering(places, spread, lambda parts: method(*parts))
    if places == list(range(len(rule.expansion))):
        return lambda children: method(*children)
    return lambda children: method(*[None if i is None else children[i] for i in places])


def _places(rule: Rule) -> list[int | None]:
    """The symbols that have a value, and None for each absent part in brackets."""
    absent = rule.options.empty_indices or (False,) * len(rule.expansion)
    symbols = iter(enumerate(rule.expansion))
    places: list[int | None] = []
    for missing in absent:
        if missing:
            places.append(None)
            continue
        at, symbol = next(symbols)
        if not (symbol.is_term and symbol.filter_out):  # type: ignore[attr-defined]
            places.append(at)
    return places


def _gathering(places: list[int | None], spread: set[int], finish: Build) -> Build:
    def build(children: list[Any]) -> Any:
        parts: list[Any] = []
        for at in places:
            if at in spread:
                parts += children[at]
            else:
                parts.append(None if at is None else children[at])
        return finish(parts)

    return build
