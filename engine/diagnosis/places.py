"""Where a line lies in the program: the loops, branches and guards around it.

May import the standard library only. Lines count from 1; a program that does not compile has no
places.
"""

import ast
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

_MAX_TEXT = 80
_RANK = re.compile(r"rank|RANK|is_main|is_master|master|main_process|is_first|is_last", re.ASCII)
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)
_LOOPS = (ast.For, ast.AsyncFor, ast.While)
_JUMPS = (ast.Return, ast.Break, ast.Continue, ast.Raise)

_MAX_PARSED = 48 * 1024
"""Characters; the time that an f-string takes to parse grows with its square, and nothing else of
the server goes on meanwhile."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """A part of the program that only some ranks may run, or run as often."""

    kind: Literal["branch", "guard", "loop"]
    """branch: an arm of an `if`; guard: what follows an `if` that leaves; loop: the body."""
    first: int
    last: int
    header: int
    """Line of the `if`, `for` or `while`."""
    text: str
    """The header as the learner wrote it, cut to a line."""
    node: ast.stmt
    names_rank: bool
    """Whether its condition speaks of a rank, or of a variable made from one."""

    def holds(self, lines: Sequence[int]) -> bool:
        """Whether one of the lines lies in it."""
        return any(self.first <= line <= self.last for line in lines)


@dataclass(frozen=True, slots=True, kw_only=True)
class Jump:
    """A statement by which one rank may leave a loop, or a round of it, on its own."""

    line: int
    keyword: str


class Places:
    """The places of one program."""

    def __init__(self, source: str) -> None:
        self._lines = source.splitlines()
        self._tree: ast.Module | None = None
        try:
            if len(source) <= _MAX_PARSED:
                self._tree = ast.parse(source)
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            pass  # as deep sources raise
        self._of_rank = frozenset(_made_from_rank(self._tree)) if self._tree else frozenset()

    def around(self, line: int) -> list[Place]:
        """The places that hold a line within its own function, innermost first."""
        if self._tree is None:
            return []
        found: list[Place] = []
        self._descend(self._tree.body, line, found)
        return found[::-1]

    def apart(self, one: int, other: int) -> bool:
        """Whether ranks may well be on these two lines at once, or nothing is known of it.

        Not so for two lines of one round of the same code, where every rank that runs one comes
        to the other before or after it.
        """
        if self._tree is None or self._function_of(one) is not self._function_of(other):
            return True
        if self._in_two_arms(self._tree.body, one, other):
            return True
        mine = [place for place in self.around(one) if not place.holds([other])]
        theirs = [place for place in self.around(other) if not place.holds([one])]
        if any(place.kind == "loop" or place.names_rank for place in mine + theirs):
            return True
        branches = [
            [place for place in places if place.kind == "branch"] for places in (mine, theirs)
        ]
        if all(branches):
            return True
        return any(_leaves(_arm_at(p.node, p.first)) for places in branches for p in places)

    def are_alternatives(self, one: int, other: int) -> bool:
        """Whether the lines lie in different arms of one branch."""
        return self._tree is not None and self._in_two_arms(self._tree.body, one, other)

    def in_every_arm(self, branch: Place, line: int) -> bool:
        """Whether another arm of the branch makes the very call of that line."""
        if not isinstance(branch.node, ast.If):
            return False
        arms = (branch.node.body, branch.node.orelse)
        inside = [arm for arm in arms if arm and arm[0].lineno <= line <= _end(arm)]
        others = [
            node for arm in arms if arm not in inside for part in arm for node in _calls(part)
        ]
        mine = {ast.unparse(call) for call in self.calls(line)}
        return bool(mine & {ast.unparse(call) for call in others})

    def rescue(self, line: int, other: int) -> Jump | None:
        """The `except` or `finally` around the other line, of the `try` that the line is in."""
        for node in ast.walk(self._tree) if self._tree is not None else ():
            if not isinstance(node, ast.Try) or not node.body[0].lineno <= line <= _end(node.body):
                continue
            for handler in node.handlers:
                if handler.lineno <= other <= _end(handler.body):
                    return Jump(line=handler.lineno, keyword="except")
            if node.finalbody and node.finalbody[0].lineno <= other <= _end(node.finalbody):
                return Jump(line=node.finalbody[0].lineno - 1, keyword="finally")
        return None

    def jump(self, loop: Place) -> Jump | None:
        """The first way out of a round of a loop that depends on a condition."""
        return next(_jumps(loop.node, True), None)

    def calls(self, line: int) -> list[ast.Call]:
        """The calls that a line is part of, outermost first."""
        if self._tree is None:
            return []
        return [
            node
            for node in ast.walk(self._tree)
            if isinstance(node, ast.Call) and node.lineno <= line <= (node.end_lineno or 0)
        ]

    def all_calls(self) -> list[ast.Call]:
        """Every call of the program."""
        if self._tree is None:
            return []
        return list(_calls(self._tree))

    def suite(self, line: int) -> tuple[Place, ...]:
        """The branches that a line is in, for comparing two lines."""
        return tuple(place for place in self.around(line) if place.kind == "branch")

    # ------------------------------------------------------------------ inside
    def _descend(self, body: Sequence[ast.stmt], line: int, found: list[Place]) -> None:
        guards: list[ast.If] = []
        for statement in body:
            if _spans(statement, line):
                found += [self._guard(g, body) for g in guards]
                self._enter(statement, line, found)
                return
            if isinstance(statement, ast.If) and _leaves(statement.body) and not statement.orelse:
                guards.append(statement)

    def _enter(self, statement: ast.stmt, line: int, found: list[Place]) -> None:
        if isinstance(statement, _FUNCTIONS):
            if any(_spans(inner, line) for inner in statement.body):
                found.clear()  # what is around the function is not around its calls
            self._descend(statement.body, line, found)
            return
        for arm in _arms(statement):
            if arm and arm[0].lineno <= line <= _end(arm):
                if isinstance(statement, (ast.If, *_LOOPS)):
                    found.append(self._place(statement, arm))
                self._descend(arm, line, found)
                return

    def _place(self, statement: ast.stmt, arm: Sequence[ast.stmt]) -> Place:
        return Place(
            kind="branch" if isinstance(statement, ast.If) else "loop",
            first=arm[0].lineno,
            last=_end(arm),
            header=statement.lineno,
            text=self._text(statement.lineno),
            node=statement,
            names_rank=self._names_rank(statement),
        )

    def _guard(self, guard: ast.If, body: Sequence[ast.stmt]) -> Place:
        return Place(
            kind="guard",
            first=(guard.end_lineno or guard.lineno) + 1,
            last=_end(body),
            header=guard.lineno,
            text=self._text(guard.lineno),
            node=guard,
            names_rank=self._names_rank(guard),
        )

    def _names_rank(self, statement: ast.stmt) -> bool:
        if not isinstance(statement, ast.If):
            return False
        names = {node.id for node in ast.walk(statement.test) if isinstance(node, ast.Name)}
        return bool(_RANK.search(ast.unparse(statement.test)) or names & self._of_rank)

    def _text(self, line: int) -> str:
        text = self._lines[line - 1].strip() if 0 < line <= len(self._lines) else ""
        return text if len(text) <= _MAX_TEXT else text[: _MAX_TEXT - 3] + "..."

    def _function_of(self, line: int) -> ast.AST | None:
        holding = [
            node
            for node in ast.walk(self._tree or ast.Module([], []))
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))
            and node.body[0].lineno <= line <= (node.end_lineno or 0)
        ]
        return max(holding, key=lambda node: node.lineno, default=None)

    def _in_two_arms(self, body: Sequence[ast.stmt], one: int, other: int) -> bool:
        """Whether the innermost statement around both holds them in different parts of it."""
        for statement in body:
            if not (_spans(statement, one) and _spans(statement, other)):
                continue
            if isinstance(statement, _FUNCTIONS):
                return self._in_two_arms(statement.body, one, other)
            arms = [_arm_at(statement, line) for line in (one, other)]
            if arms[0] is arms[1]:
                return bool(arms[0]) and self._in_two_arms(arms[0], one, other)
            return True
        return False


def _made_from_rank(tree: ast.Module) -> Iterator[str]:
    """Names of variables that are assigned something that speaks of a rank."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.Assign):
            continue
        for target in node.targets:
            names, values = [target], [node.value]
            if isinstance(target, ast.Tuple) and isinstance(node.value, ast.Tuple):
                names, values = target.elts, node.value.elts
            for name, value in zip(names, values, strict=False):
                if isinstance(name, ast.Name) and _RANK.search(ast.unparse(value)):
                    yield name.id


def _end(body: Sequence[ast.stmt]) -> int:
    return body[-1].end_lineno or body[-1].lineno


def _calls(node: ast.AST) -> Iterator[ast.Call]:
    return (inner for inner in ast.walk(node) if isinstance(inner, ast.Call))


def _spans(node: ast.stmt, line: int) -> bool:
    return node.lineno <= line <= (node.end_lineno or node.lineno)


def _arms(statement: ast.stmt) -> Iterator[Sequence[ast.stmt]]:
    match statement:
        case ast.If() | ast.For() | ast.AsyncFor() | ast.While():
            yield statement.body
            yield statement.orelse
        case ast.With() | ast.AsyncWith():
            yield statement.body
        case ast.Try():
            yield statement.body
            for handler in statement.handlers:
                yield handler.body
            yield statement.orelse
            yield statement.finalbody
        case ast.Match():
            for one in statement.cases:
                yield one.body


def _arm_at(statement: ast.stmt, line: int) -> Sequence[ast.stmt]:
    """The part of a statement that holds a line; empty for its header."""
    return next(
        (
            arm
            for arm in _arms(statement)
            if arm and arm[0].lineno <= line <= (arm[-1].end_lineno or 0)
        ),
        (),
    )


def _leaves(body: Sequence[ast.stmt]) -> bool:
    """Whether what follows the body is not run after it."""
    if not body:
        return False
    last = body[-1]
    if isinstance(last, ast.Expr) and isinstance(last.value, ast.Call):
        return ast.unparse(last.value.func) in ("sys.exit", "exit", "quit", "os._exit")
    return isinstance(last, _JUMPS)


def _jumps(node: ast.AST, in_loop: bool) -> Iterator[Jump]:
    """Conditional ways out of the rounds of a loop; in_loop: break and continue are the loop's."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, _FUNCTIONS):
            continue
        if isinstance(child, ast.Return):
            yield Jump(line=child.lineno, keyword="return")
        elif isinstance(child, ast.Break) and in_loop:
            yield Jump(line=child.lineno, keyword="break")
        elif isinstance(child, ast.Continue) and in_loop:
            yield Jump(line=child.lineno, keyword="continue")
        elif isinstance(child, ast.ExceptHandler) and not _leaves(child.body):
            yield Jump(line=child.lineno, keyword="except")
        else:
            yield from _jumps(child, in_loop and not isinstance(child, _LOOPS))
