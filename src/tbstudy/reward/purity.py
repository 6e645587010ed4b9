"""Which checks may share a process with others."""

from __future__ import annotations

import ast

_CHAT = {"Text", "ToolCall", "ToolResponse", "ToolCallResponse", "ParallelToolCall"}
#: What a check may take from where without changing anything outside itself. Modules are full of other modules, so it
#: is names that are let in: `json.codecs.builtins` is every builtin there is, `decimal.setcontext` holds for whoever
#: calculates next.
_NAMES = {
    "json": {"dumps", "loads", "JSONDecodeError"},
    "re": {"compile", "match", "search", "fullmatch", "findall", "finditer", "sub", "split", "escape", "error", "I",
           "M", "S", "X", "IGNORECASE", "MULTILINE", "DOTALL", "VERBOSE"},
    "math": {"ceil", "floor", "trunc", "fabs", "isclose", "isnan", "isinf", "fsum", "prod", "sqrt", "log", "log2",
             "log10", "exp", "gcd", "pi", "inf", "nan"},
    "string": {"ascii_letters", "ascii_lowercase", "ascii_uppercase", "digits", "punctuation", "whitespace"},
    "datetime": {"datetime", "date", "time", "timedelta", "timezone", "UTC"},
    "decimal": {"Decimal", "InvalidOperation", "ROUND_HALF_UP", "ROUND_HALF_EVEN", "ROUND_HALF_DOWN", "ROUND_UP",
                "ROUND_DOWN", "ROUND_CEILING", "ROUND_FLOOR"},
    "collections": {"Counter", "defaultdict", "OrderedDict", "deque", "namedtuple"},
    "itertools": {"accumulate", "chain", "combinations", "count", "groupby", "islice", "pairwise", "permutations",
                  "product", "repeat", "zip_longest"},
    "copy": {"copy", "deepcopy"},
    "typing": {"Any", "Callable", "Dict", "Iterable", "Iterator", "List", "Literal", "Mapping", "Optional", "Sequence",
               "Set", "Tuple", "Union", "cast"},
    "thinkingbox.common": {"Judge", "TestContext", "average_reward", "match_score", *_CHAT},
    "thinkingbox.common.chat_types": _CHAT,
    "thinkingbox.common.graders": {"average_reward", "match_score"}}
#: What may be taken from something imported: constructors and constants of classes.
_OF_CLASSES = {"strptime", "fromisoformat", "fromtimestamp", "now", "utcnow", "today", "combine", "min", "max", "utc",
               "from_iterable", "fromkeys", "from_float"}
#: Builtins through which code reaches beyond its own values.
_BARRED = {"exec", "eval", "compile", "open", "input", "globals", "locals", "vars", "setattr", "delattr", "getattr",
           "breakpoint", "exit", "quit", "help", "memoryview", "type", "object", "super"}
#: Attributes by which values lead to what all share: frames and code, pydantic's classes, the judge's connection.
_LEADING_OUT = ("_", "gi_", "cr_", "ag_", "tb_", "f_", "co_", "model_")
_LINKS = {"llm"}


def is_pure(module: ast.Module, function: str) -> bool:
    """Whether the check `function` of `module` leaves nothing behind but its verdict.

    A cautious reading of the source that says no when in doubt. It allows: known names of known modules, no assignment
    to attributes, no dunder or underscored names but `judge._get_text_completion`, no classes or patterns of classes,
    async code, bare except or with statements, and no parameters but `x` and `judge` (fixtures are code from
    elsewhere).
    """
    names = [n for n in module.body if isinstance(n, ast.FunctionDef) and n.name == function]
    if not names or any(a.arg not in ("x", "judge") for a in (*names[-1].args.posonlyargs, *names[-1].args.args,
                                                             *names[-1].args.kwonlyargs)):
        return False
    nodes = list(ast.walk(module))
    modules = {a.asname or a.name: a.name for n in nodes if isinstance(n, ast.Import) for a in n.names}
    members = {a.asname or a.name for n in nodes if isinstance(n, ast.ImportFrom) for a in n.names}
    if any("." in bound for bound in modules):  # `import a.b` binds a, and with it all of a
        return False
    return all(_harmless(node) for node in nodes) and _keeps_to_names(nodes, modules, members)


def _harmless(node: ast.AST) -> bool:
    match node:
        case ast.Import():
            return all(a.name in _NAMES for a in node.names)
        case ast.ImportFrom():
            return node.level == 0 and all(a.name in _NAMES.get(node.module or "", ()) for a in node.names)
        case ast.Attribute():
            return isinstance(node.ctx, ast.Load) and node.attr not in _LINKS and (
                not node.attr.startswith(_LEADING_OUT) or node.attr == "_get_text_completion")
        case ast.Name():
            return node.id not in _BARRED and not node.id.startswith("__")
        case ast.ExceptHandler():
            return node.type is not None
        case (ast.ClassDef() | ast.AsyncFunctionDef() | ast.Await() | ast.AsyncFor() | ast.AsyncWith() | ast.Yield()
              | ast.YieldFrom() | ast.Global() | ast.Nonlocal() | ast.Delete() | ast.With()
              | ast.MatchClass()):  # its keywords are attributes under another name
            return False
    return True


def _keeps_to_names(nodes: list[ast.AST], modules: dict[str, str], members: set[str]) -> bool:
    """Modules are only used as `module.name` with a name that is let in; of what they give, `_OF_CLASSES` is taken."""
    let_in = set()
    for node in nodes:
        if not isinstance(node, ast.Attribute):
            continue
        of, name = node.value, node.attr
        if isinstance(of, ast.Name) and of.id in modules:
            if name not in _NAMES[modules[of.id]]:
                return False
            let_in.add(id(of))
        elif (_from_a_module(of, modules) or isinstance(of, ast.Name) and of.id in members) and name not in _OF_CLASSES:
            return False
    return all(id(n) in let_in for n in nodes if isinstance(n, ast.Name) and n.id in modules)


def _from_a_module(node: ast.AST, modules: dict[str, str]) -> bool:
    return isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in modules
