"""Test-case files as text: what a task says about itself, and the code of its check. Nothing is imported."""

from __future__ import annotations

import ast
import copy
import textwrap
from collections.abc import Collection
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import yaml

from tbstudy.errors import StudyError

try:
    from yaml import CSafeLoader as Loader
except ImportError:  # a PyYAML built without libyaml reads the same, slower
    from yaml import SafeLoader as Loader


#: A YAML text may have so many characters, its values so many nodes once every alias is written out, and nest so deep.
MAX_TEXT, MAX_NODES, MAX_NESTING = 64 << 20, 2_000_000, 200
#: What a check is called in a YAML test case.
CHECK_NAME = "__tb_test_fn"


@dataclass(frozen=True, slots=True)
class TestFunction:
    """A test case as written: `config` has the file's earlier defaults under the function's own keys. `code` is the
    source of the check where it is text of its own, in YAML files."""

    name: str
    line: int
    config: dict[str, Any]
    code: str | None = None


def read_yaml(path: Path, kind: str, unique: bool = False) -> Any:
    """A YAML file's value. With `unique`, a key that stands twice in a mapping is an error; otherwise its last value
    counts, as datasets of others have it.

    Raises:
        StudyError: the file is missing or is not YAML.
    """
    try:
        return parse_yaml(path.read_text(encoding="utf-8"), str(path), unique=unique)
    except FileNotFoundError:
        raise StudyError(f"{kind} {path} does not exist") from None
    except (OSError, UnicodeDecodeError) as error:
        raise StudyError(f"{kind} {path} cannot be read: {error}") from error


def parse_yaml(text: str, file: str, first_line: int = 1, unique: bool = False) -> Any:
    """The value of YAML text that starts at `first_line` of `file`.

    Raises:
        StudyError: with the line in `file` where parsing stopped, or for a text that would grow beyond all measure.
    """
    if len(text) > MAX_TEXT:
        raise StudyError(f"{file}: {len(text)} characters of YAML, at most {MAX_TEXT} are read")
    try:
        loader = Loader(text)
        try:
            node = loader.get_single_node()
            if node is None:
                return None
            _check_size(node, f"{file}:{first_line}", aliased="*" in text and "&" in text)
            if unique:
                _check_unique(node, file)
            return loader.construct_document(node)
        finally:
            loader.dispose()
    except RecursionError:
        raise StudyError(f"{file}:{first_line}: YAML that is nested too deep") from None
    except (ValueError, OverflowError) as error:  # the 45th of May, a number of thousands of digits
        raise StudyError(f"{file}:{first_line}: not valid YAML: a value that is none: {error}") from error
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        line = first_line + (mark.line if mark else 0)
        problem = getattr(error, "problem", None) or str(error)
        raise StudyError(f"{file}:{line}: not valid YAML: {problem}") from error


def _check_size(root: yaml.Node, where: str, aliased: bool) -> None:
    """Refuse what a few aliases blow up: Python shares the values, whoever merges, copies or sends them does not."""
    sizes: dict[int, int] = {}  # 0 while a node's own content is being counted
    todo: list[tuple[yaml.Node, bool, int]] = [(root, False, 1)]
    while todo:
        node, counted, level = todo.pop()
        if isinstance(node, yaml.ScalarNode):
            sizes[id(node)] = 1
            continue
        inner = [n for pair in node.value for n in pair] if isinstance(node, yaml.MappingNode) else node.value
        if counted:
            sizes[id(node)] = size = 1 + sum(sizes[id(n)] for n in inner)
            if size > MAX_NODES:
                raise StudyError(f"{where}: YAML of more than {MAX_NODES} values"
                                 + (" once its aliases are written out" if aliased else ""))
            continue
        known = sizes.get(id(node))
        if known == 0:
            raise StudyError(f"{where}: YAML with an alias to what holds it")
        if known is None:
            if level > MAX_NESTING:
                raise StudyError(f"{where}: YAML that is nested too deep (more than {MAX_NESTING})")
            sizes[id(node)] = 0
            todo.append((node, True, level))
            todo += [(n, False, level + 1) for n in inner]


def _check_unique(root: yaml.Node, file: str) -> None:
    todo = [root]
    while todo:
        node = todo.pop()
        if isinstance(node, yaml.MappingNode):
            seen: set[str] = set()
            for key, value in node.value:
                todo.append(value)
                if not isinstance(key, yaml.ScalarNode):
                    continue
                if key.value in seen:
                    raise StudyError(f"{file}:{key.start_mark.line + 1}: key {key.value!r} stands here a second time")
                seen.add(key.value)
        elif isinstance(node, yaml.SequenceNode):
            todo += node.value


def read_functions(path: Path, only: Collection[str] | None = None) -> list[TestFunction]:
    """The test cases of a Python file in order; with `only`, the YAML of the others is not parsed.

    A test case is a top-level function whose first statement is a string literal that starts with `!`; the rest of
    the literal is a YAML mapping. Such literals at top level are defaults for the functions below them: the
    function's keys win, and two lists of `tags` are joined.

    Raises:
        StudyError: with file and line, for a syntax error, a literal that is not a YAML mapping, or two test cases
            of one name.
    """
    defaults: dict[str, Any] = {}
    found: dict[str, TestFunction] = {}
    lines: dict[str, int] = {}
    for node in _parse(path).body:
        literal = _literal(node)
        if literal is not None:
            defaults = {**defaults, **_mapping(literal, path)}
        elif (own := _own_literal(node)) is not None:
            name = node.name
            if name in lines:
                raise StudyError(f"{path}:{node.lineno}: test case {name} is already defined on line {lines[name]}")
            lines[name] = node.lineno
            if only is not None and name not in only:
                continue
            config = _mapping(own, path)
            merged = {**defaults, **config}
            if isinstance(defaults.get("tags"), list) and isinstance(config.get("tags"), list):
                merged["tags"] = defaults["tags"] + config["tags"]
            found[name] = TestFunction(name, node.lineno, merged)
    return list(found.values())


def read_cases(path: Path, only: Collection[str] | None = None) -> list[TestFunction]:
    """The test cases of a Python file, or of a YAML file: `test_cases`, a list of mappings with the keys of a
    docstring and `uid` and `test_code`, code that names the check `CHECK_NAME`.

    Raises:
        StudyError: as `read_functions`, or naming the case and the key that is missing.
    """
    if path.suffix == ".py":
        return read_functions(path, only)
    content = read_yaml(path, "test-case file")
    cases = content.get("test_cases") if isinstance(content, dict) else None
    if not isinstance(cases, list):
        raise StudyError(f"{path}: must be a mapping with a list 'test_cases'")
    found: dict[str, TestFunction] = {}
    for position, case in enumerate(cases):
        for key in ("uid", "test_code"):
            if not isinstance(case, dict) or not isinstance(case.get(key), str):
                raise StudyError(f"{path}: test_cases[{position}]: field {key!r} must be text")
        name = case["uid"]
        if name in found:
            raise StudyError(f"{path}: test_cases[{position}]: uid {name} is already taken")
        if only is None or name in only:
            config = {k: v for k, v in case.items() if k not in ("uid", "test_code", "metadata")}
            found[name] = TestFunction(name, 1, config, case["test_code"])
    return list(found.values())


def check_module(path: Path, function: str) -> ast.Module:
    """The code that a task's check needs: the file without its other test cases, and without any YAML.

    Line numbers are the file's, so that a traceback points into it.

    Raises:
        StudyError: the file has no such test case.
    """
    body: list[ast.stmt] = []
    seen = False
    for node in _parse(path).body:
        if _literal(node) is not None:
            continue
        if _own_literal(node) is not None:
            if node.name != function:
                continue
            seen = True
            node = copy.copy(node)
            node.body = node.body[1:] or [ast.copy_location(ast.Pass(), node.body[0])]
        body.append(node)
    if not seen:
        raise StudyError(f"{path} has no test case {function}")
    return ast.Module(body=body, type_ignores=[])


def _parse(path: Path) -> ast.Module:
    try:
        stat = path.stat()
        return _parse_version(path, stat.st_mtime_ns, stat.st_size)
    except FileNotFoundError:
        raise StudyError(f"test-case file {path} does not exist") from None
    except SyntaxError as error:
        raise StudyError(f"{path}:{error.lineno}: not valid Python: {error.msg}") from error
    except (RecursionError, MemoryError) as error:
        raise StudyError(f"{path}: Python that nests too deep to be read") from error
    except (OSError, ValueError) as error:
        raise StudyError(f"{path} cannot be read: {error}") from error


@lru_cache(maxsize=16)
def _parse_version(path: Path, _mtime_ns: int, _size: int) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def _literal(node: ast.stmt) -> ast.Constant | None:
    """The node's constant when the statement is nothing but a string that starts with `!`."""
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
        return node.value if node.value.value.startswith("!") else None
    return None


def _own_literal(node: ast.stmt) -> ast.Constant | None:
    return _literal(node.body[0]) if isinstance(node, ast.FunctionDef) else None


def _mapping(literal: ast.Constant, path: Path) -> dict[str, Any]:
    value = parse_yaml(textwrap.dedent(literal.value[1:]), str(path), literal.lineno)
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise StudyError(f"{path}:{literal.lineno}: the text after '!' must be a YAML mapping, "
                         f"it is a {type(value).__name__}")
    return value
