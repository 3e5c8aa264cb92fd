"""Programs like the lessons of an image-processing course: inputs, operators, and displays of what they produce."""

from __future__ import annotations

import numpy as np

from headrace.model.program import Data, Program

IMAGE = 36 * 256 * 256
"""Bytes of an image: 256 x 256 pixels, enlarged six times in rows and columns."""
OPERATORS = ("Filter", "FFT", "Threshold", "Resample", "Histogram", "Arithmetic", "Classify")
DISPLAYS = ("Display Image", "2D Plot", "File Viewer", "Data Object Info", "Animate")
_DISPLAY_SHARES = (0.45, 0.15, 0.2, 0.15, 0.05)
_TWO_INPUTS = 0.3
"""Share of operators that combine two images."""
_NEWEST = 0.7
"""Share of operators that continue with the newest image; the others take any."""


def lesson(seed: int) -> Program:
    """One lesson: about 18 tasks and 18 dependencies.

    One to four input tasks read images. Operators of 1 to 8 s work on the newest image or any other, some on two.
    Displays of 1 to 4 s show every image that no operator uses, and a few others; they are the output tasks.

    >>> program = lesson(3)
    >>> len(program.tasks), sum(len(task.inputs) for task in program.tasks.values())
    (22, 24)
    """
    rng = np.random.default_rng(seed)
    program = Program(f"lesson-{seed}")
    count = int(rng.integers(8, 27))
    inputs = int(rng.integers(1, 5))
    images: list[Data] = [_task(program, rng, "Input", (), (0.5, 2.0)) for _ in range(inputs)]
    used: set[str] = set()
    for _ in range(max(1, round(count * 0.45) - inputs // 2)):
        chosen = _chosen(images, rng)
        used |= {image.name for image in chosen}
        images.append(_task(program, rng, str(rng.choice(OPERATORS)), chosen, (1.0, 8.0)))
    unused = [image for image in images if image.name not in used]
    others = [image for image in images if image.name in used]
    more = max(0, min(len(others), count - len(program.tasks) - len(unused)))
    shown = unused + [others[k] for k in sorted(rng.choice(len(others), more, replace=False).tolist())]
    for image in shown:
        _task(program, rng, str(rng.choice(DISPLAYS, p=_DISPLAY_SHARES)), [image], (1.0, 4.0), shows=True)
    return program


def _chosen(images: list[Data], rng: np.random.Generator) -> list[Data]:
    """The one or two images that an operator reads."""
    first = len(images) - 1 if rng.random() < _NEWEST else int(rng.integers(len(images)))
    numbers = {first}
    if len(images) > 1 and rng.random() < _TWO_INPUTS:
        second = int(rng.integers(len(images) - 1))
        numbers.add(second + (second >= first))
    return [images[k] for k in sorted(numbers)]


def _task(
    program: Program,
    rng: np.random.Generator,
    kind: str,
    reads: list[Data] | tuple[Data, ...],
    seconds: tuple[float, float],
    *,
    shows: bool = False,
) -> Data:
    name = f"{kind} {len(program.tasks)}"
    outputs = {} if shows else {f"image {len(program.tasks)}": float(IMAGE)}
    made: Data = program.task(
        None, inputs=reads, outputs=outputs, work=float(rng.uniform(*seconds)), name=name, kind=kind
    )
    return made
