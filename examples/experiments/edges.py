"""Edge detection on two images with three detectors: the program of edges.toml.

headrace sweep examples/experiments/edges.toml --quote
headrace sweep examples/experiments/edges.toml
headrace results edges --plot sigma:strength --by detect
"""

import math

import numpy as np

import headrace as hr


def load(path):
    """An image: rows of numbers."""
    return np.loadtxt(path)


def smoothed(image, sigma):
    """The image after a Gaussian filter along rows and columns."""
    reach = max(1, round(3 * sigma))
    weights = np.exp(-0.5 * (np.arange(-reach, reach + 1) / sigma) ** 2)
    weights /= weights.sum()
    padded = np.pad(image, reach, mode="edge")
    rows = np.apply_along_axis(np.convolve, 1, padded, weights, mode="valid")
    return np.apply_along_axis(np.convolve, 0, rows, weights, mode="valid")


def gradient(image, middle):
    """The length of the gradient; `middle` is the weight of the middle row or column."""
    padded = np.pad(image, 1, mode="edge")
    weights = (1.0, middle, 1.0)
    n, m = image.shape
    dx = sum(w * (padded[k : k + n, 2:] - padded[k : k + n, :-2]) for k, w in enumerate(weights))
    dy = sum(w * (padded[2:, k : k + m] - padded[:-2, k : k + m]) for k, w in enumerate(weights))
    return np.hypot(dx, dy) / (2 * sum(weights))


def sobel(image):
    return gradient(image, 2.0)


def prewitt(image):
    return gradient(image, 1.0)


def canny(image, sigma=1.0):
    """The gradient of the smoothed image, without what is weak."""
    found = gradient(smoothed(image, sigma), 2.0)
    return np.where(found > 0.3 * found.max(), found, 0.0)


def judge(edges):
    """How strong the edges are, and how much of the image they cover."""
    covered = float((edges > 0.1 * edges.max()).mean())
    return {"strength": math.sqrt(float((edges**2).mean())), "covered": covered}


program = hr.Program("edges")
image = program.input("image", "region_a.txt")
pixels = program.task(load, inputs=[image], outputs={"pixels": "20 kB"}, name="load", work=0.01)
edges = program.task(sobel, inputs=[pixels], outputs={"edges": "20 kB"}, name="detect", work=0.02)
score = program.task(judge, inputs=[edges], outputs=["score"], name="judge", work=0.01)
