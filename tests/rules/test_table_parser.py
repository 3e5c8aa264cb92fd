"""The driver for lark's tables reads what lark reads, as the same tree, and refuses what lark refuses."""

from __future__ import annotations

import random
from importlib.resources import files
from typing import Any

from lark import Lark, Token, Transformer, UnexpectedToken, v_args

from headrace.rules.lexer import tokens_of
from headrace.rules.messages import Problem
from headrace.rules.parser import _Given, _split
from headrace.rules.statements import Builder
from headrace.rules.table_parser import NotAccepted, TableParser
from rules.texts import GOOD, Generator

METHODS = {name: method for name, method in vars(Builder).items() if not name.startswith("__")}
ByLark: Any = v_args(inline=True)(type("ByLark", (Transformer,), METHODS))
"""The same methods, called by lark."""

TEXT = files("headrace.rules").joinpath("grammar.lark").read_text(encoding="utf-8")
LARK = Lark(TEXT, start="rule", parser="lalr", lexer=_Given, transformer=ByLark())
OURS = TableParser(LARK, Builder())


def outcome(parse: Any, tokens: list[Token]) -> Any:
    try:
        return parse(tokens)
    except (NotAccepted, UnexpectedToken):
        return "refused"
    except Problem as problem:
        return str(problem)


def changed(tokens: list[Token], every: list[Token], rng: random.Random) -> list[Token]:
    """A token left out, repeated, replaced or swapped with another, up to three times."""
    tokens = list(tokens)
    for _ in range(rng.randint(1, 3)):
        at, other = rng.randrange(len(tokens)), rng.randrange(len(tokens))
        match rng.randrange(4):
            case 0 if len(tokens) > 1:
                del tokens[at]
            case 1:
                tokens.insert(at, tokens[other])
            case 2:
                tokens[at] = rng.choice(every)
            case _:
                tokens[at], tokens[other] = tokens[other], tokens[at]
    return tokens


def test_same_trees_and_same_refusals_as_lark() -> None:
    rng = random.Random(7)
    rules = list(_split(tokens_of(GOOD + Generator(7).text(150))))
    every = [token for tokens in rules for token in tokens]
    accepted = refused = 0
    for tokens in rules:
        for case in (tokens, *(changed(tokens, every, rng) for _ in range(10))):
            ours = outcome(OURS.parse, case)
            assert ours == outcome(LARK.parse, case), " ".join(case)
            accepted, refused = accepted + (ours != "refused"), refused + (ours == "refused")
    assert accepted > 200
    assert refused > 1000
