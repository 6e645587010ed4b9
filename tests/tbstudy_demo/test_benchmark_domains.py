"""Every benchmark template: the golden script passes, everything else fails, and nothing gives the branch away."""

import json
import re

import pytest

from tbstudy.sandbox.sqlite import dump, open_database
from tbstudy_demo.cases import Ask, Call, Say
from tbstudy_demo.registry import BENCHMARK, POOL, load
from tbstudy_demo.words import AMOUNTS, COUNTS, DATES, NAMES, NUMBERS, TODAY

DOMAINS = {name: load(name) for name in BENCHMARK}
SEEDS = [f"test-{n}" for n in range(5)]
CELLS = [(d, t.name, twin) for d, domain in DOMAINS.items() for t in domain.templates for twin in t.twins]
TEMPLATES = [(d, t.name) for d, domain in DOMAINS.items() for t in domain.templates]


class Bench:
    """One drawn case, prepared once and replayed many times."""

    def __init__(self, domain: str, template: str, twin: str, seed: str):
        self.domain = DOMAINS[domain]
        self.server = self.domain.server
        self.template = next(t for t in self.domain.templates if t.name == template)
        self.case = self.template.draw(twin, seed)
        config = {"data": self.domain.data, "data_patch": self.case.rows,
                  "golden_test_case": {"tool_interactions": self.case.golden}}
        config = json.loads(json.dumps(config))
        self.snapshot = self.server.prepare(config)
        self.golden = self.server.golden_state(config)
        self.calls = [(g["tool"], g["parameters"]) for g in config["golden_test_case"]["tool_interactions"]]
        self.schemas = {s["function"]["name"]: s["function"]["parameters"]["properties"]
                        for s in self.server.tool_schemas()}

    def replay(self, calls):
        """(answers, indices of the calls that changed the state, effects) of a list of (tool, arguments)."""
        db = open_database(self.snapshot)
        try:
            answers, writes, before = [], [], dump(db, self.server.keys)
            for i, (tool, arguments) in enumerate(calls):
                answers.append(self.server.invoke(db, tool, arguments))
                after = dump(db, self.server.keys)
                if after != before:
                    writes.append(i)
                before = after
            return answers, writes, self.server.effects(db, self.golden)
        finally:
            db.close()

    def passes(self, calls) -> bool:
        effects = self.replay(calls)[2]
        same = effects["result_db_hash"] == effects["golden_db_hash"]
        assert same == (not effects["diff"])
        return same


def calls_of(script):
    return [(s.tool, s.arguments) for s in script if isinstance(s, Call)]


@pytest.fixture(scope="module")
def bench():
    made = {}

    def get(*key) -> Bench:
        if key not in made:
            made[key] = Bench(*key)
        return made[key]

    return get


def other_values(value, schema, data):
    """Wrong values of an argument that the server would accept where that is possible."""
    if isinstance(value, bool):
        return [not value]
    if isinstance(value, (int, float)):
        return [value + 1]
    if isinstance(value, list):
        options = [v for v in schema["items"].get("enum", ["X-1"]) if v not in value]
        return [value[:-1], [value[0], options[0]]]
    if "enum" in schema:
        return [v for v in schema["enum"] if v != value]
    if value is None:
        return ["X-1"]
    if re.fullmatch(r"\d{4}-\d{2}-\d{2}", value):
        return [next(d for d in DATES if d != value)]
    base = [v for rows in data.values() for row in rows for v in row.values()
            if isinstance(v, str) and v.split("-")[0] == value.split("-")[0]]
    return [*base[:1], value + "1"]


@pytest.mark.parametrize("domain, template, twin", CELLS)
def test_only_the_right_calls_pass(bench, domain, template, twin):
    for seed in SEEDS:
        b = bench(domain, template, twin, seed)
        answers, writes, effects = b.replay(b.calls)
        assert not any(a.startswith("Error") for a in answers), answers
        assert effects["result_db_hash"] == effects["golden_db_hash"] and effects["diff"] == []
        assert b.passes([]) == (not writes)
        assert len(writes) <= 3
        for i in writes:
            tool, arguments = b.calls[i]
            assert not b.passes(b.calls[:i] + b.calls[i + 1:]), f"{tool} left out"
            for name, value in arguments.items():
                for wrong in other_values(value, b.schemas[tool][name], DOMAINS[domain].data):
                    changed = [*b.calls[:i], (tool, {**arguments, name: wrong}), *b.calls[i + 1:]]
                    assert not b.passes(changed), f"{tool}({name}={wrong!r})"


@pytest.mark.parametrize("domain, template, twin", CELLS)
def test_every_mistake_fails(bench, domain, template, twin):
    for seed in SEEDS:
        b = bench(domain, template, twin, seed)
        writes = b.replay(b.calls)[1]
        mistakes = b.case.mistakes
        assert 4 <= len(mistakes) <= 6
        assert {"wrong_branch", "extra_write"} <= set(mistakes)
        assert ("gives_up" in mistakes) == ("wrong_field" in mistakes) == bool(writes)
        other_writes = b.replay(calls_of(mistakes["wrong_branch"]))[1]
        assert ("stops_early" in mistakes) == bool(writes and other_writes)
        for name, script in mistakes.items():
            assert not b.passes(calls_of(script)), f"{name} passes"
            assert not any(a.startswith("Error") for a in b.replay(calls_of(script))[0]), name


@pytest.mark.parametrize("domain, template, twin", CELLS)
def test_an_extra_write_fails(bench, domain, template, twin):
    for seed in SEEDS:
        b = bench(domain, template, twin, seed)
        tried = 0
        for other in b.template.twins:
            for script in (bench(domain, template, other, seed).case.script,
                           *bench(domain, template, other, seed).case.mistakes.values()):
                for call in calls_of(script):
                    if call in b.calls:
                        continue
                    _, writes, effects = b.replay([*b.calls, call])
                    if len(b.calls) in writes:
                        assert effects["result_db_hash"] != effects["golden_db_hash"], call
                        tried += 1
        assert tried >= 2


@pytest.mark.parametrize("domain, template", TEMPLATES)
def test_twins_differ_in_one_field_that_only_a_look_up_shows(bench, domain, template):
    twins = next(t.twins for t in DOMAINS[domain].templates if t.name == template)
    assert len(twins) == 2
    for seed in SEEDS:
        one, two = (bench(domain, template, twin, seed) for twin in twins)
        assert one.case.query == two.case.query
        assert one.case.facts == two.case.facts
        differing = [(a[k], b[k]) for table in one.case.rows
                     for a, b in zip(one.case.rows[table], two.case.rows[table], strict=True)
                     for k in a if a[k] != b[k]]
        assert len(differing) == 1, differing
        for value in differing[0]:
            shown = value if isinstance(value, str) else json.dumps(value)
            assert shown not in re.findall(r"[\w-]+", one.case.query)
        # The other twin's right calls are wrong here.
        assert not one.passes(two.calls) and not two.passes(one.calls)
        for b, value in ((one, differing[0][0]), (two, differing[0][1])):
            writes = [b.calls[i] for i in b.replay(b.calls)[1]]
            acts = [i for i, s in enumerate(b.case.script)
                    if isinstance(s, Say) or isinstance(s, Call) and (s.tool, s.arguments) in writes]
            reads = [i for i, s in enumerate(b.case.script[:acts[0]]) if isinstance(s, Call)]
            assert reads, "a look-up comes first"
            word = value if isinstance(value, str) else json.dumps(value)
            assert word in b.case.script[reads[-1] + 1].thought, "the thought after the look-up states the fact"


@pytest.mark.parametrize("domain, template", TEMPLATES)
def test_queries_come_in_several_wordings(domain, template):
    t = next(t for t in DOMAINS[domain].templates if t.name == template)
    per_twin = [[t.draw(twin, f"query-{n}").query for n in range(200)] for twin in t.twins]
    assert per_twin[0] == per_twin[1]
    assert len({q[:8] if q.startswith(("Hi", "My")) else q.split(" ")[0] for q in per_twin[0]}) >= 2
    assert len(set(per_twin[0])) > 150


def is_flat(answer: str) -> bool:
    value = json.loads(answer)
    objects = value if isinstance(value, list) else [value]
    return len(objects) <= 3 and all(
        isinstance(o, dict) and len(o) <= 8 and not any(isinstance(v, (list, dict)) for v in o.values())
        for o in objects)


@pytest.mark.parametrize("domain, template, twin", CELLS)
def test_scripts_have_the_agreed_shape(bench, domain, template, twin):
    for seed in SEEDS:
        b = bench(domain, template, twin, seed)
        facts = b.case.facts
        assert len(re.findall(r"[.?!](?= |$)", b.case.query)) <= 3
        assert not any(value in b.case.query for value in facts.values())
        for name, script in {"script": b.case.script, **b.case.mistakes}.items():
            assert isinstance(script[-1], Say) and not any(isinstance(s, Say) for s in script[:-1])
            assert script[-1].text.endswith(" <DONE>") and 3 <= len(script[-1].text.split()) - 1 <= 12
            for step in script:
                assert 4 <= len(step.thought.split()) <= 10, step.thought
                if isinstance(step, Ask):
                    assert step.text.endswith("?") and "<DONE>" not in step.text
                    assert sum(key in step.text for key in facts) == 1, (name, step.text)
        assert 1 <= len(b.case.script) - 1 <= 5
        assert all(is_flat(a) for a in b.replay(b.calls)[0])
        for key in facts:
            assert re.fullmatch(r"[a-z]+( [a-z]+){0,2}", key)


@pytest.mark.parametrize("domain, template, twin", CELLS)
def test_all_values_come_from_the_word_lists(bench, domain, template, twin):
    numbers = {str(n) for n in (0, 1, *COUNTS, *AMOUNTS)}
    for seed in SEEDS:
        b = bench(domain, template, twin, seed)
        texts = [b.case.query, *b.case.facts.values()]
        for script in (b.case.script, *b.case.mistakes.values()):
            texts += [s.thought for s in script] + [s.text for s in script if not isinstance(s, Call)]
            texts += [json.dumps(s.arguments) for s in script if isinstance(s, Call)]
            texts += b.replay(calls_of(script))[0]
        assert sum(name in b.case.query for name in NAMES) == 1
        for text in texts:
            assert set(re.findall(r"\b[A-Z][a-z]+ [A-Z][a-z]+\b", text)) <= set(NAMES), text
            dates = r"\d{4}-\d{2}-\d{2}"
            assert set(re.findall(dates, text)) <= {*DATES, TODAY}, text
            text = re.sub(dates, " ", text)
            ids = r"\b[A-Z]{1,2}-(\d+)"
            assert set(re.findall(ids, text)) <= set(NUMBERS), text
            text = re.sub(ids, " ", text)
            assert set(re.findall(r"\d+(?:\.\d+)?", text)) <= numbers, text


@pytest.mark.parametrize("domain", DOMAINS)
def test_domain_as_a_whole(domain):
    d = DOMAINS[domain]
    assert len(d.templates) == 4
    cases = {(t.name, twin): t.draw(twin, "whole") for t in d.templates for twin in t.twins}
    assert sum(bool(cases[t.name, t.twins[0]].facts) for t in d.templates) >= 2
    silent = 0
    for t in d.templates:
        benches = [Bench(domain, t.name, twin, "whole") for twin in t.twins]
        silent += sum(not b.replay(b.calls)[1] for b in benches)
    assert silent <= 1
    assert 6 <= len(d.server.tool_schemas()) <= 9
    assert 8 <= len(d.policy.strip().splitlines()) <= 15
    assert len(json.dumps(d.server.tool_schemas())) + len(d.policy) <= 3800
    # Base rows never meet a drawn value.
    base = [str(v) for rows in d.data.values() for row in rows for v in row.values()]
    assert not {n for n in NAMES if n in base}
    assert not {m for v in base for m in re.findall(r"^[A-Z]{1,2}-(\d+)$", v)} & set(NUMBERS)


def test_domains_share_neither_tables_nor_tools():
    everything = [*DOMAINS.values(), *map(load, POOL)]
    tables = [t for d in everything for t in d.server.keys]
    assert len(tables) == len(set(tables))
    tools = [s["function"]["name"] for d in everything for s in d.server.tool_schemas()]
    assert len(tools) == len(set(tools))
    names = [t.name for d in everything for t in d.templates]
    assert len(names) == len(set(names))
    kinds = json.dumps([d.server.tool_schemas() for d in DOMAINS.values()])
    for kind in ("boolean", "integer", "number", "array", "null"):
        assert f'"type": "{kind}"' in kinds


def places(b: Bench, calls) -> list[tuple[str, str]]:
    return [(d["kind"], d["table"]) for d in b.replay(calls)[2]["diff"]]


def test_a_room_downgrade_needs_the_managers_approval_just_when_the_booking_says_so(bench):
    needed = bench("travel", "room_downgrade", "approval_needed", SEEDS[0])
    waived = bench("travel", "room_downgrade", "approval_waived", SEEDS[0])
    look, ask_manager, change = needed.calls
    assert ask_manager[0] == "request_manager_approval" and waived.calls == [look, change]
    assert needed.passes([look, ask_manager, change]) and waived.passes([look, change])
    assert places(needed, [look, change]) == [("missing", "manager_approvals")]
    assert places(waived, [look, ask_manager, change]) == [("extra", "manager_approvals")]
    assert places(needed, [look, ask_manager]) == [("wrong", "reservations")]
    assert not needed.passes([look, ask_manager, ask_manager, change])
