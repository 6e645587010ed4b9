"""Fixture that compares a generated answer with a reference: meaning, cited place, readability."""

from __future__ import annotations

import re
from typing import Any

from tbstudy.reward.standin.judge import safe_tag_encode
from tbstudy.reward.standin.rubrics import RubricConfig, RubricJudge

_SAME = ("You compare a candidate answer to a query with a reference answer. The three stand between tags of these "
         "names. Does the candidate say everything that the reference says? The query may help to understand both. How "
         "numbers are formatted does not matter. A currency mark may be added where it makes sense, and must be there "
         "if the reference has one. Reply with one word, Yes or No.")
_ATOMS = ((r"p(\d+)-(\d+)", "pages {0} through {1}"), (r"p(\d+)", "page {0}"),
          (r"(.+):r(\d+)-(\d+)", "rows {1} through {2} of sheet '{0}'"), (r"(.+):r(\d+)", "row {1} of sheet '{0}'"),
          (r"r(\d+)-(\d+)", "rows {0} through {1}"), (r"r(\d+)", "row {0}"), (r"multiple_sheets", "multiple sheets"))


def describe_location(place: str) -> str:
    """Words for a place: atoms p3, p3-5, r7, r7-9, Sheet:r7, Sheet:r7-9; `+` all of them, `,` any of them."""
    def atom(text: str) -> str:
        for pattern, words in _ATOMS:
            if found := re.fullmatch(pattern, text.strip(), re.IGNORECASE):
                return words.format(*found.groups())
        return text.strip()

    def together(atoms: list[str]) -> str:
        if len(atoms) < 3:
            return ("both " if len(atoms) == 2 else "") + " and ".join(atoms)
        return ", ".join(atoms[:-1]) + ", and " + atoms[-1]

    return ", or ".join(together([atom(a) for a in option.split("+")]) for option in place.split(","))


class GeneratedAnswerEvaluator:
    """`judge` and `x` are injected; the rest is configuration that a call may override."""

    def __init__(self, judge: Any, x: Any, fail_on_mismatch: bool = True, rubrics_threshold: float = 0.7,
                 max_workers: int = 2):
        self.judge, self.x = judge, x
        self.fail_on_mismatch, self.rubrics_threshold = fail_on_mismatch, rubrics_threshold
        self.rubric_judge = RubricJudge(judge, x, max_workers=max_workers)

    def candidate_answer_matches_reference(self, query: str, reference: str, candidate: str,
                                           fail_on_mismatch: bool = True) -> bool:
        """Whether the candidate says what the reference says; AssertionError if not and `fail_on_mismatch`."""
        user = "\n".join(f"<{tag}>\n{safe_tag_encode(text)}\n</{tag}>" for tag, text in
                         (("query", query), ("reference", reference), ("candidate", candidate)))
        same = self.judge.evaluate_bool(_SAME, user)
        if fail_on_mismatch and not same:
            raise AssertionError(f"the answer {candidate[:200]!r} does not match the reference {reference[:200]!r}")
        return same

    def evaluate(self, reference: str, ref_doc: str | None = None, ref_loc: str | None = None,
                 fail_on_mismatch: bool | None = None, rubrics_threshold: float | None = None, *,
                 ref_pages: str | None = None) -> bool:
        """Compare `x.response` with the reference, then rate citation and wording by rubrics.

        Unless a mismatch fails at once, the comparison is one more criterion that weighs as much as all others.
        AssertionError on a mismatch (if it fails) or below the threshold; returns whether the meaning matches.
        """
        fails = self.fail_on_mismatch if fail_on_mismatch is None else fail_on_mismatch
        threshold = self.rubrics_threshold if rubrics_threshold is None else rubrics_threshold
        place = ref_loc if ref_loc is not None else ref_pages
        query, response = self.x.query(), self.x.response
        criteria = []
        if ref_doc is not None:
            criteria.append(f"Does the response name the document '{ref_doc}' as its source?")
        if place is not None:
            criteria.append(f"Does the response say that its information is from {describe_location(place)} of the "
                            "source document?")
        criteria += ["Is the response clear and easy to read, and does it answer the query directly?",
                     "Is the response brief and complete, without filler or repetition?"]
        rubrics = [RubricConfig(c, 1.0) for c in criteria]
        if fails:
            same = self.candidate_answer_matches_reference(query, reference, response)
        else:
            rubrics.insert(0, RubricConfig(f"To the query {query!r} the reference answer is {reference!r}. Does the "
                                           "response say everything that the reference says?", float(len(criteria))))
        result = self.rubric_judge.evaluate(response, rubrics, global_threshold=threshold, throw_on_failure=True)
        return same if fails else bool(result.scores[0].rating)
