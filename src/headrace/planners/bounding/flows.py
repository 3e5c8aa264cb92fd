from __future__ import annotations
from typing import Any
class Flows: 
    add_to: Any
    priced: Any
class FlowRows: pass
