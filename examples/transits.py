"""Search the light curves of stars for planets: a planet that passes in front of its star dims it periodically.

    headrace run examples/transits.py:program --on local

The light curves are generated, with a planet at three of the eight stars, so that the answer is known. For each star, a
slow drift is removed and four bands of periods are searched by box least squares; the run writes planets.txt.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from headrace import Program

Curve = NDArray[np.float64]
"""Two rows: times in days, and brightness relative to the star's mean."""
Peak = tuple[float, float]
"""Signal-to-noise ratio and period in days of the best box in a band."""

STARS = 8
PLANETS = {1: (3.37, 0.004), 4: (11.2, 0.006), 6: (1.83, 0.003)}
"""Stars with a planet: its period in days and the depth of its transits."""
BANDS = ((1.0, 2.0, 1200), (2.0, 4.0, 800), (4.0, 8.0, 500), (8.0, 16.0, 300))
"""Bands of periods in days, and how many periods are tried in each."""


def observe(star: int) -> Curve:
    """Ninety days of a star's brightness, measured every half hour: noise, a slow drift, perhaps transits."""
    random = np.random.default_rng(star)
    days = np.arange(0.0, 90.0, 1 / 48)
    light = 1 + random.normal(0, 0.001, len(days)) + 0.01 * np.sin(days / random.uniform(5, 15))
    if star in PLANETS:
        period, depth = PLANETS[star]
        light[(days + 0.3) % period < 0.12] -= depth
    return np.stack((days, light))


def detrend(curve: Curve) -> Curve:
    """The curve divided by a running median over two days, which removes drifts but no transits."""
    days, light = curve
    padded = np.pad(light, 48, mode="edge")
    windows = np.lib.stride_tricks.sliding_window_view(padded, 97)
    return np.stack((days, light / np.median(windows, axis=1)))


def search(curve: Curve, first: float, last: float, count: int) -> Peak:
    """Box least squares over periods from `first` to `last`: the strongest dip. O(periods x samples)."""
    days, light = curve
    residual = light - light.mean()
    noise = residual.std()
    best = (0.0, first)
    for period in np.geomspace(first, last, count):
        bins = max(int(period / 0.06), 8)
        phase = ((days / period % 1.0) * bins).astype(int)
        dips = np.bincount(phase, -residual, minlength=bins)
        hits = np.bincount(phase, minlength=bins)
        box, samples = dips + np.roll(dips, -1), hits + np.roll(hits, -1)
        strength = float(np.max(box / np.sqrt(np.maximum(samples, 1)))) / noise
        best = max(best, (strength, float(period)))
    return best


def choose(*peaks: Peak) -> Peak:
    """The strongest peak of all bands."""
    return max(peaks)


def report(*peaks: Peak) -> str:
    """A line for each star, the surest planet first."""
    ranked = sorted(((*peak, star) for star, peak in enumerate(peaks)), reverse=True)
    lines = [
        f"star {star}: {'planet?' if snr > 12 else '-':8} snr {snr:5.1f}  period {period:6.3f} d"
        for snr, period, star in ranked
    ]
    return "\n".join(lines) + "\n"


def build(stars: int = STARS) -> Program:
    """The program: seven tasks for each star, and one report."""
    program = Program("transits")
    peaks = []
    for star in range(stars):
        number = program.input(f"star {star}", value=star)
        raw = program.task(
            observe, inputs=[number], outputs={f"raw {star}": "70 kB"}, work=0.02, name=f"observe {star}"
        )
        flat = program.task(
            detrend, inputs=[raw], outputs={f"flat {star}": "70 kB"}, work=0.3, name=f"detrend {star}"
        )
        found = [
            program.task(
                search,
                inputs=[flat],
                kwargs={"first": first, "last": last, "count": count},
                outputs={f"peak {star} {band}": 60},
                work=count * 0.001,
                name=f"search {star} {band}",
            )
            for band, (first, last, count) in enumerate(BANDS)
        ]
        peaks.append(
            program.task(
                choose, inputs=found, outputs={f"peak {star}": 60}, work=0.005, name=f"choose {star}"
            )
        )
    text = program.task(report, inputs=peaks, outputs={"planets": 500}, work=0.001, name="report")
    program.output(text, "planets.txt")
    return program


program = build()
