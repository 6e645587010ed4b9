"""ThinkingBox's test API, for datasets whose checks import it on a machine without the framework.

Only what check code and fixtures touch: messages and the test context, the judge, graders, rubrics and the answer
evaluator. With the framework installed nothing of this is used.
"""

from __future__ import annotations

import importlib.util
import sys
from types import ModuleType


def install() -> bool:
    """Answer imports of `thinkingbox` from here unless the framework is installed; True when it is."""
    try:
        # A folder that only happens to be called thinkingbox is no framework.
        if importlib.util.find_spec("thinkingbox.common") is not None:
            import thinkingbox.common  # noqa: F401

            return True
    except ModuleNotFoundError:
        pass
    from tbstudy.reward.standin import answers, chat, graders, judge, rubrics

    modules = {
        "thinkingbox": {},
        "thinkingbox.common": {"TestContext": chat.TestContext, "Judge": judge.Judge},
        "thinkingbox.common.chat_types": vars(chat),
        "thinkingbox.common.judge": vars(judge),
        "thinkingbox.common.graders": vars(graders),
        "thinkingbox.common.config_types": {"RubricConfig": rubrics.RubricConfig},
        "thinkingbox.common.rubrics_judge": vars(rubrics),
        "thinkingbox.fixtures": {"GeneratedAnswerEvaluator": answers.GeneratedAnswerEvaluator},
        "thinkingbox.fixtures.answer_evaluator": vars(answers),
    }
    for name, content in modules.items():
        module = ModuleType(name, "Stand-in by tbstudy.")
        module.__dict__.update({k: v for k, v in content.items() if not k.startswith("_")})
        if name in ("thinkingbox", "thinkingbox.common", "thinkingbox.fixtures"):
            module.__path__ = []
        sys.modules[name] = module
        parent, _, child = name.rpartition(".")
        if parent:
            setattr(sys.modules[parent], child, module)
    return False
