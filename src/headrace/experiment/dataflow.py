"""The applications of the macro-dataflow paper (section 5.2) as programs: Jacobi, FFT, matrix multiplication."""

from __future__ import annotations

import math

from headrace.model.errors import UsageError
from headrace.model.program import Program

GIGABIT = 125e6
"""Bytes per second of the paper's network."""
_DOUBLE, _COMPLEX, _INTEGER = 8, 16, 4


def jacobi(
    iterations: int = 10,
    pieces: int = 64,
    order: int = 16_384,
    *,
    ratio: float = 6.0,
    bandwidth: float = GIGABIT,
) -> Program:
    """Jacobi iteration on a matrix partitioned by rows: `iterations * pieces` tasks of one kind.

    In each iteration a piece needs itself and the adjacent rows of the pieces above and below, from the previous
    iteration. A task therefore writes its piece and its first and last row as separate items: 64
    pieces and 10 iterations give the 640 tasks of the paper, 100 iterations its 6,400. Elements have 8 bytes.

    `ratio` is computation to communication: a task's seconds divided by those that all its inputs would take on a
    link of `bandwidth`.

    >>> jacobi(10).graph.n_tasks, jacobi(2, pieces=4, order=64).graph.level.tolist()
    (640, [0, 0, 0, 0, 1, 1, 1, 1])
    """
    _positive(iterations=iterations, pieces=pieces, order=order, ratio=ratio, bandwidth=bandwidth)
    row = float(order * _DOUBLE)
    piece = row * order / pieces
    work = ratio * (piece + 2 * row) / bandwidth
    program = Program(f"jacobi-{iterations * pieces}")
    for p in range(pieces):
        for name, size in _jacobi_items(0, p, pieces, piece, row).items():
            program.input(name, size=size)
    for i in range(1, iterations + 1):
        for p in range(pieces):
            near = [f"piece{i - 1}.{p}"]
            near += [f"bottom{i - 1}.{p - 1}"] * (p > 0) + [f"top{i - 1}.{p + 1}"] * (p < pieces - 1)
            made = _jacobi_items(i, p, pieces, piece, row)
            if i == iterations:  # no task reads the rows of the last iteration
                made = {f"piece{i}.{p}": piece}
            program.task(name=f"jacobi{i}.{p}", kind="jacobi", inputs=near, outputs=made, work=work)
    return program


def _jacobi_items(i: int, p: int, pieces: int, piece: float, row: float) -> dict[str, float]:
    """The items of piece p after iteration i: the piece, and the rows that its neighbours need."""
    made = {f"piece{i}.{p}": piece}
    if p > 0:
        made[f"top{i}.{p}"] = row
    if p < pieces - 1:
        made[f"bottom{i}.{p}"] = row
    return made


def fft(points: int = 2**24, pieces: int = 64, *, ratio: float = 3.0, bandwidth: float = GIGABIT) -> Program:
    """A fast Fourier transform of `points` complex numbers in `pieces` pieces; both are powers of two.

    One level reorders the input, log2(points) levels are butterflies, and one scales and writes the result, each
    with one task per piece: 2^24 points in 64 pieces give the paper's 26 * 64 = 1,664 tasks. The first butterflies
    stay within a piece; in each of the last log2(pieces) levels a piece also needs that of its partner, which is
    1, 2, 4, ... pieces away. Complex numbers have 16 bytes.

    `ratio` is computation to communication: a task's seconds divided by those that two pieces take on a link of
    `bandwidth`.

    >>> fft().graph.n_tasks, int(fft(16, 4).graph.level.max()) + 1
    (1664, 6)
    """
    _positive(points=points, pieces=pieces, ratio=ratio, bandwidth=bandwidth)
    for what, number in (("points", points), ("pieces", pieces)):
        if number & (number - 1):
            raise UsageError(f"{what} is {number}", where="fft", hint="give a power of two")
    if pieces > points:
        raise UsageError(f"{pieces} pieces of {points} points", where="fft", hint="give fewer pieces")
    stages, exchanges = int(math.log2(points)), int(math.log2(pieces))
    size = float(points // pieces * _COMPLEX)
    work = ratio * 2 * size / bandwidth
    program = Program(f"fft-{pieces * (stages + 2)}")
    for p in range(pieces):
        program.input(f"input.{p}", size=size)
        program.task(
            name=f"reorder.{p}", kind="reorder", inputs=[f"input.{p}"], outputs={f"x0.{p}": size}, work=work
        )
    for s in range(1, stages + 1):
        away = 1 << (s - 1 - (stages - exchanges)) if s > stages - exchanges else 0
        for p in range(pieces):
            near = [f"x{s - 1}.{p}"] + [f"x{s - 1}.{p ^ away}"] * (away > 0)
            program.task(
                name=f"butterfly{s}.{p}",
                kind="butterfly",
                inputs=near,
                outputs={f"x{s}.{p}": size},
                work=work,
            )
    for p in range(pieces):
        program.task(
            name=f"scale.{p}",
            kind="scale",
            inputs=[f"x{stages}.{p}"],
            outputs={f"result.{p}": size},
            work=work,
        )
    return program


def matmul(
    order: int = 4_000,
    blocks: int = 16,
    *,
    streams: int = 2,
    ratio: float = 6.0,
    bandwidth: float = GIGABIT,
) -> Program:
    """The product of two square matrices of `blocks` by `blocks` pieces: one task per piece of the result.

    A task reads a row of pieces of the first matrix and a column of the second. A piece consists of `streams`
    items: with 16 by 16 pieces of 250 by 250 integers of 4 bytes, two of 125 kB each give the paper's 1,024
    initial and 512 result streams (it calls them 128 kB).

    `ratio` is computation to communication: a task's seconds divided by those that all its inputs would take on a
    link of `bandwidth`.

    >>> program = matmul()
    >>> program.graph.n_tasks, len(program.inputs()), len(program.results())
    (256, 1024, 512)
    """
    _positive(order=order, blocks=blocks, streams=streams, ratio=ratio, bandwidth=bandwidth)
    side = order / blocks
    size = side * side * _INTEGER / streams
    work = ratio * 2 * blocks * streams * size / bandwidth
    program = Program(f"matmul-{blocks * blocks}")

    def items(matrix: str, i: int, j: int) -> list[str]:
        return [f"{matrix}{i}.{j}.{s}" for s in range(streams)]

    places = [(i, j) for i in range(blocks) for j in range(blocks)]
    for matrix in ("a", "b"):
        for i, j in places:
            for name in items(matrix, i, j):
                program.input(name, size=size)
    for i, j in places:
        needed = [name for k in range(blocks) for name in (*items("a", i, k), *items("b", k, j))]
        made = dict.fromkeys(items("c", i, j), size)
        program.task(name=f"multiply{i}.{j}", kind="multiply", inputs=needed, outputs=made, work=work)
    return program


def _positive(**numbers: float) -> None:
    for what, number in numbers.items():
        if not number > 0:
            raise UsageError(f"{what} is {number}", hint="give a number above 0")
