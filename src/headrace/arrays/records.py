"""How the package keeps records for compiled code.

A record is a NamedTuple of arrays, some of them structured: fields that are read together are a row, one line of the
processor's cache. A NamedTuple is what Python holds and what an `entry` takes; it knows the types of its fields.
Functions inside loops get the arrays themselves, or are compiled as a `leaf`: elsewhere numba counts references
whenever a field is taken out of a record, which made the replay of a plan four times slower.
Only a record of dozens of arrays that Python hands over many times is made a reference (`references`), once: passing a
NamedTuple from Python costs about 0.2 us for each array, on every call.
"""

from __future__ import annotations

from typing import TypeAlias, cast

import numpy as np
from numpy.typing import DTypeLike, NDArray

Records: TypeAlias = NDArray[np.record]
"""A structured array; its dtype says which fields a row has."""


def row_type(*fields: tuple[str, DTypeLike]) -> np.dtype[np.record]:
    """The dtype of a structured array whose rows have their fields as attributes, compiled or not.

    >>> rows = np.zeros(2, row_type(("time", np.float64), ("id", np.int32)))
    >>> rows[1].time = 2.5
    >>> rows["time"].tolist()
    [0.0, 2.5]
    """
    return cast("np.dtype[np.record]", np.dtype((np.record, np.dtype(list(fields), align=True))))
