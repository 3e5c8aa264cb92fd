"""After a loss few tasks run again: one loss per shape, as the benchmark has them."""

import pytest
from bench.reexecution import SHAPES, one_loss


@pytest.mark.slow
@pytest.mark.parametrize("number", range(len(SHAPES)))
def test_few_more_tasks_run_again_than_must(number: int) -> None:
    loss = one_loss(number, seed=1, replicate=0)
    assert loss is not None
    assert loss.ratio <= 1.5, loss


@pytest.mark.slow
def test_copies_are_made_before_the_loss() -> None:
    """A chain with sides that are read at the end: without copies 17 tasks ran again."""
    loss = one_loss(11, seed=1, replicate=3)
    assert loss is not None
    assert loss.shape == "chain"
    assert loss.again <= 8, loss
