"""The pool's templates: scripts and mistakes of any seed, and twins that only a look-up tells apart."""

import json
import re

import pytest

from tbstudy.sandbox.sqlite import open_database
from tbstudy_demo.cases import Ask, Call, Say
from tbstudy_demo.registry import DOMAINS, POOL, load
from tbstudy_demo.words import AMOUNTS, COUNTS, DATES, NAMES, NUMBERS, TODAY

TEMPLATES = [(name, template) for name in POOL for template in load(name).templates]
CELLS = [(name, template, twin) for name, template in TEMPLATES for twin in template.twins]
SEEDS = [f"seed-{n}" for n in range(4)]


def ids(value):
    return getattr(value, "name", value)


def play(domain, case, scripts):
    """(answers, passed) of each script, every one on a fresh database."""
    config = {"data": domain.data, "data_patch": case.rows, "golden_test_case": {"tool_interactions": case.golden}}
    golden, snapshot = domain.server.golden_state(config), domain.server.prepare(config)
    for script in scripts:
        db = open_database(snapshot)
        answers = [domain.server.invoke(db, s.tool, s.arguments) for s in script if isinstance(s, Call)]
        effects = domain.server.effects(db, golden)
        db.close()
        yield answers, effects["result_db_hash"] == effects["golden_db_hash"]


@pytest.mark.parametrize(("name", "template", "twin"), CELLS, ids=ids)
def test_the_script_passes_and_every_mistake_fails(name, template, twin):
    for seed in SEEDS:
        case = template.draw(twin, seed)
        scripts = {"right": case.script, **case.mistakes}
        assert len(case.mistakes) >= 3 and {"wrong_branch", "extra_write"} <= set(case.mistakes)
        for label, (answers, passed) in zip(scripts, play(load(name), case, scripts.values()), strict=True):
            assert not [a for a in answers if a.startswith("Error")], label
            assert passed == (label == "right"), label


@pytest.mark.parametrize(("name", "template"), TEMPLATES, ids=ids)
def test_twins_read_alike_and_want_different_things(name, template):
    one, other = ([template.draw(twin, f"twin-{n}") for n in range(60)] for twin in template.twins)
    assert [c.query for c in one] == [c.query for c in other]
    assert [c.facts for c in one] == [c.facts for c in other]
    assert len({re.sub(r"[A-Z]\w*-\d+|\d+|[A-Z]\w+", "", c.query) for c in one}) >= 3
    for a, b in zip(one[:5], other[:5], strict=True):
        differing = [(x, y) for table in a.rows for x, y in zip(a.rows[table], b.rows[table], strict=True) if x != y]
        assert differing and all(sum(x[k] != y[k] for k in x) == 1 for x, y in differing)
        assert [passed for _, passed in play(load(name), a, [b.script])] == [False]
        assert [passed for _, passed in play(load(name), b, [a.script])] == [False]
        # Up to and including the look-up the right behaviour is the same.
        assert a.script[0] == b.script[0] and isinstance(a.script[0], (Ask, Call))


@pytest.mark.parametrize(("name", "template", "twin"), [(d, t, twin) for d in DOMAINS for t in load(d).templates
                                                      for twin in t.twins], ids=ids)
def test_a_mistaken_branch_states_the_fact_as_it_is(name, template, twin):
    for seed in SEEDS:
        case = template.draw(twin, seed)
        stated = [[s.thought.split(", so ")[0] for s in script if ", so " in s.thought and s.thought.startswith("The ")]
                  for script in (case.script, case.mistakes["wrong_branch"])]
        assert stated[0] and stated[0][0] == stated[1][0]


@pytest.mark.parametrize(("name", "template", "twin"), CELLS, ids=ids)
def test_texts_have_the_agreed_form(name, template, twin):
    for seed in SEEDS:
        case = template.draw(twin, seed)
        for script in (case.script, *case.mistakes.values()):
            assert isinstance(script[-1], Say) and not any(isinstance(s, Say) for s in script[:-1])
            assert script[-1].text.endswith(" <DONE>") and "?" not in script[-1].text
            for step in script:
                assert 4 <= len(step.thought.split()) <= 10, step.thought
                if isinstance(step, Ask):
                    assert "?" in step.text and "<DONE>" not in step.text
                    assert [key for key in case.facts if key in step.text]
        assert not [v for v in case.facts.values() if v in case.query]
        assert sum(n in case.query for n in NAMES) == 1


@pytest.mark.parametrize(("name", "template", "twin"), CELLS, ids=ids)
def test_every_value_is_one_of_the_words(name, template, twin):
    for seed in SEEDS:
        case = template.draw(twin, seed)
        scripts = (case.script, *case.mistakes.values())
        texts = [case.query, *case.facts.values(), *(s.thought for script in scripts for s in script)]
        texts += [json.dumps(s.arguments) for script in scripts for s in script if isinstance(s, Call)]
        texts += [a for answers, _ in play(load(name), case, scripts) for a in answers]
        for text in texts:
            assert set(re.findall(r"\d{4}-\d{2}-\d{2}", text)) <= {*DATES, TODAY}
            text = re.sub(r"\d{4}-\d{2}-\d{2}", "", text)
            assert set(re.findall(r"\b[A-Z]{1,2}-(\d+)", text)) <= set(NUMBERS)
            text = re.sub(r"\b[A-Z]{1,2}-\d+", "", text)
            assert set(re.findall(r"\d+(?:\.\d+)?", text)) <= {str(v) for v in (*AMOUNTS, *COUNTS)}, text


@pytest.mark.parametrize("name", POOL)
def test_the_domain_as_a_whole(name):
    domain = load(name)
    tools = domain.server.tool_schemas()
    assert domain.name == domain.server.name == name
    assert 5 <= len(tools) <= 9 and all(t["function"]["description"] for t in tools)
    assert len(domain.policy) + len(json.dumps(tools)) <= 3700
    assert len(domain.templates) == 6 and all(len(t.twins) == 2 for t in domain.templates)
    cases = [t.draw(t.twins[0], "any") for t in domain.templates]
    assert sum(bool(c.facts) for c in cases) >= 3
    used = {s.tool for t in domain.templates for twin in t.twins for s in t.draw(twin, "any").script
            if isinstance(s, Call)}
    assert used == {t["function"]["name"] for t in tools}, "every tool is wanted somewhere"
    base = json.dumps(domain.data)
    assert not [n for n in NAMES if n in base], "base rows never meet a drawn name"
    assert not set(re.findall(r"[A-Z]-(\d+)", base)) & set(NUMBERS), "base rows never meet a drawn id"


def test_schemas_hold_every_kind_of_argument():
    text = json.dumps([load(name).server.tool_schemas() for name in POOL])
    for kind in ("boolean", "integer", "number", "array", "null", "string"):
        assert f'"type": "{kind}"' in text


def test_writing_tools_differ_between_the_pools_domains():
    names = [t["function"]["name"] for name in POOL for t in load(name).server.tool_schemas()]
    assert len(names) == len(set(names))
