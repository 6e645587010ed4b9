"""The attempt that a report shows is chosen by a rule."""

from __future__ import annotations

import pandas as pd

from tbstudy.outcome import Example, example_of

COLUMNS = ["uid", "repetition", "passed", "system_error", "wrong", "missing", "extra"]
RIGHT, WRONG = (True, False, 0, 0, 0), (False, False, 0, 1, 0)
SILENT, BROKEN = (False, False, 0, 0, 0), (False, True, 0, 0, 0)


def table(**outcomes) -> pd.DataFrame:
    rows = [(f"{name}.py:t", r, *outcome) for name, of in outcomes.items() for r, outcome in enumerate(of)]
    # As it is read: the order of categories is that of the file, not of the alphabet.
    return pd.DataFrame(rows, columns=COLUMNS).astype({"uid": "category"})


def test_the_first_task_that_base_gets_wrong_and_trained_gets_right():
    base = table(d=[WRONG, WRONG], c=[RIGHT, WRONG], b=[SILENT, BROKEN], a=[WRONG, RIGHT])
    trained = table(a=[WRONG, RIGHT], b=[RIGHT, RIGHT], c=[RIGHT, RIGHT], d=[RIGHT, RIGHT])
    assert example_of(base, trained) == Example("c.py:t", 1, 2), "a never improves, b has no difference to show"
    again = base.sample(frac=1, random_state=0)
    assert example_of(again, trained) == Example("c.py:t", 1, 2), "whatever the order of the records"


def test_no_example_where_nothing_improved():
    assert example_of(table(a=[RIGHT, BROKEN]), table(a=[RIGHT, RIGHT])) is None
    assert example_of(table(a=[WRONG, WRONG]), table(a=[BROKEN, WRONG])) is None
