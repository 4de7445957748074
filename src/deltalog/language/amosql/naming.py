"""Names of variables in generated rules: those of AMOSQL with a capital, each distinct.

for each item i … quantity(i)   →   I, Quantity
"""

from __future__ import annotations


class VariableNames:
    """Names that occur in one rule, or in several that share variables."""

    def __init__(self) -> None:
        self._taken: set[str] = set()

    def take(self, name: str) -> None:
        """Leave a name to others."""
        self._taken.add(name)

    def fresh(self, name: str) -> str:
        """
        >>> names = VariableNames()
        >>> names.fresh("i"), names.fresh("i"), names.fresh("consume_freq")
        ('I', 'I2', 'ConsumeFreq')
        """
        wanted = "".join(part[:1].upper() + part[1:] for part in name.split("_")) or "V"
        found, number = wanted, 1
        while found in self._taken:
            number += 1
            found = f"{wanted}{number}"
        self._taken.add(found)
        return found
