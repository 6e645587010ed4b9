"""Every value that a bundled task can vary: names, numbers, amounts, dates.

The small policy's tokenizer gives each of these exactly one token, so that copying a value is one step. Ids are a
prefix and a number, `L-204`.
"""

from __future__ import annotations

import random

_FIRST = ("Ada", "Ben", "Clara", "Dmitri", "Elena", "Farid", "Greta", "Hugo", "Ines", "Jonas", "Kira", "Liam",
          "Mona", "Nadia", "Omar", "Petra", "Quinn", "Rosa", "Stefan", "Tara", "Umut", "Vera", "Wade", "Yusuf")
_LAST = ("Abbott", "Brandt", "Castillo", "Duarte", "Eriksen", "Fontaine", "Grant", "Hoffman", "Iversen", "Jansen",
         "Kovacs", "Lindqvist", "Moreau", "Novak", "Okafor", "Pereira", "Quist", "Rossi", "Santos", "Tanaka",
         "Urbina", "Vargas", "Weber", "Zhang")

#: 96 full names, one token each.
NAMES = tuple(f"{first} {_LAST[(i * 7 + j * 5) % len(_LAST)]}" for i, first in enumerate(_FIRST) for j in range(4))
#: 200 three-digit numbers for ids.
NUMBERS = tuple(str(n) for n in sorted(random.Random(20260301).sample(range(100, 1000), 200)))
#: Amounts of money and other measured values, in units.
AMOUNTS = tuple(range(10, 100, 5)) + tuple(n + 0.5 for n in range(12, 72, 5))
#: Small counts.
COUNTS = tuple(range(2, 10))
#: Dates after the dataset's frozen clock.
DATES = tuple(f"2026-{month:02d}-{day:02d}" for month in range(4, 10) for day in (3, 7, 11, 14, 18, 21, 24, 28))
#: The dataset's frozen clock: no tool reads the real one.
TODAY = "2026-03-02"


def atoms() -> tuple[str, ...]:
    """All values as the texts that appear in prompts and tool results."""
    return NAMES + NUMBERS + tuple(str(a) for a in AMOUNTS) + DATES + tuple(str(c) for c in (0, 1, *COUNTS))


class Draw:
    """Draws the values of one case: every id and name at most once, so that a wrong copy is always visible."""

    def __init__(self, rng: random.Random):
        self.rng = rng
        self._numbers = list(rng.sample(NUMBERS, 24))
        self._names = list(rng.sample(NAMES, 12))
        self._dates = list(rng.sample(DATES, 12))
        self._amounts = list(rng.sample(AMOUNTS, 12))

    def id(self, prefix: str) -> str:
        return f"{prefix}-{self._numbers.pop()}"

    def name(self) -> str:
        return self._names.pop()

    def date(self) -> str:
        return self._dates.pop()

    def amount(self) -> int | float:
        return self._amounts.pop()

    def count(self) -> int:
        return self.rng.choice(COUNTS)

    def choice(self, *options):
        return self.rng.choice(options)
