"""Links that become idle: the next transfer over them may start."""

from __future__ import annotations

from headrace.arrays.compiling import entry, leaf
from headrace.core.transitions.queues import mark_queue
from headrace.core.transitions.requests import mark_first_in_order


@leaf
def release_link(problem, state, link):
    """A link has carried its share of the transfer whose turn it was: the next one may start."""
    state.link_holder[link] = -1
    one_less(problem, state, link)


@leaf
def one_less(problem, state, link):
    """One transfer less uses a link."""
    state.link_busy[link] -= 1
    mark_queue(state, link)
    mark_first_in_order(problem, state, link)


@entry
def release_links(problem, state, links):
    """As `release_link`, for back ends in Python; links without such a transfer stay as they are."""
    for link in links:
        if state.link_holder[link] >= 0:
            release_link(problem, state, link)
