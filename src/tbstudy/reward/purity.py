"""Which checks may share a process with others."""

from __future__ import annotations

import ast

#: Modules that a check can use without changing anything outside itself.
_MODULES = {"json", "re", "math", "string", "typing", "datetime", "decimal", "collections", "itertools", "copy",
            "thinkingbox.common", "thinkingbox.common.chat_types", "thinkingbox.common.graders"}
#: Builtins through which code reaches beyond its own values.
_BARRED = {"exec", "eval", "compile", "open", "input", "globals", "locals", "vars", "setattr", "delattr", "getattr",
           "breakpoint", "exit", "quit", "help", "memoryview", "type", "object", "super"}


def is_pure(module: ast.Module, function: str) -> bool:
    """Whether the check `function` of `module` leaves nothing behind but its verdict.

    A cautious reading of the source that says no when in doubt. It allows: known imports, no assignment to
    attributes, no dunder or underscored names but `judge._get_text_completion`, no classes, async code, bare except or
    with statements, and no parameters but `x` and `judge` (fixtures are code from elsewhere).
    """
    names = [n for n in module.body if isinstance(n, ast.FunctionDef) and n.name == function]
    if not names or any(a.arg not in ("x", "judge") for a in (*names[-1].args.posonlyargs, *names[-1].args.args,
                                                             *names[-1].args.kwonlyargs)):
        return False
    return all(_harmless(node) for node in ast.walk(module))


def _harmless(node: ast.AST) -> bool:
    match node:
        case ast.Import():
            return all(a.name in _MODULES for a in node.names)
        case ast.ImportFrom():
            return node.level == 0 and node.module in _MODULES
        case ast.Attribute():
            return isinstance(node.ctx, ast.Load) and (not node.attr.startswith("_") or node.attr ==
                                                       "_get_text_completion")
        case ast.Name():
            return node.id not in _BARRED and not node.id.startswith("__")
        case ast.ExceptHandler():
            return node.type is not None
        case (ast.ClassDef() | ast.AsyncFunctionDef() | ast.Await() | ast.AsyncFor() | ast.AsyncWith() | ast.Yield()
              | ast.YieldFrom() | ast.Global() | ast.Nonlocal() | ast.Delete() | ast.With()):
            return False
    return True
