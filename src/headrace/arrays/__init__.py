"""Typed arrays that planners, coordinator and simulators share; compiled loops read and write them."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

Int64s: TypeAlias = NDArray[np.int64]
