"""Telecom: the right script passes the check, every mistake fails it."""

import pytest

from tbstudy.sandbox.sqlite import open_database
from tbstudy_demo.cases import Call
from tbstudy_demo.templates.telecom import domain

CELLS = [(template, twin) for template in domain.templates for twin in template.twins]


@pytest.mark.parametrize(("template", "twin"), CELLS, ids=lambda v: getattr(v, "name", v))
def test_golden_passes_and_mistakes_fail(template, twin):
    for seed in range(5):
        case = template.draw(twin, f"{template.name}-{seed}")
        config = {"data": domain.data, "data_patch": case.rows, "golden_test_case": {"tool_interactions": case.golden}}
        golden, snapshot = domain.server.golden_state(config), domain.server.prepare(config)
        for name, script in {"right": case.script, **case.mistakes}.items():
            db = open_database(snapshot)
            for step in script:
                if isinstance(step, Call):
                    assert not domain.server.invoke(db, step.tool, step.arguments).startswith("Error:")
            effects = domain.server.effects(db, golden)
            passed = effects["result_db_hash"] == effects["golden_db_hash"]
            assert passed == (name == "right"), (name, effects["diff"])
