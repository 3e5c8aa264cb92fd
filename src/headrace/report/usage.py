"""Cost and energy as rows of a summary."""

from __future__ import annotations

from headrace.model.usage import Usage


def usage_rows(usage: Usage) -> list[tuple[str, str]]:
    """The known figures, as (name, value).

    >>> usage_rows(Usage(12.5, 3.6e6)), usage_rows(Usage(None, None))
    ([('cost', '12.5'), ('energy', '1 kWh')], [])
    """
    rows = [("cost", f"{usage.cost:,.6g}")] if usage.cost is not None else []
    return rows + ([("energy", show_energy(usage.energy))] if usage.energy is not None else [])


def show_energy(joules: float) -> str:
    """
    >>> show_energy(500.0), show_energy(90e3), show_energy(5.4e6)
    ('500 J', '25 Wh', '1.5 kWh')
    """
    for factor, unit in ((3.6e9, "MWh"), (3.6e6, "kWh"), (3.6e3, "Wh")):
        if joules >= factor:
            return f"{joules / factor:.3g} {unit}"
    return f"{joules:.3g} J"
