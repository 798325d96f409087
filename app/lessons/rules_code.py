"""Rules of the checks that hold code: lines to put in order, and gaps to fill.

May import schema. Later rules are not asked where earlier ones already explain a mistake.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from app.lessons.compiling import why_not_python
from app.lessons.reading_checks import cut_at_gaps
from app.lessons.rules_basics import check_unique, ids_of
from app.schema import Document, Path, Problem
from app.schema.checks import FillEntry, GapEntry, LineEntry, OrderEntry


def check_order(document: Document, order: OrderEntry, path: Path) -> Iterator[Problem]:
    """Ids, `after`, and that what counts as right is Python."""
    for rule in (_line_ids, _references, _cycles, _own_order, _solutions):
        problems = list(rule(document, order, path))
        yield from problems
        if problems:
            return


def _line_ids(document: Document, order: OrderEntry, path: Path) -> Iterator[Problem]:
    lines = ids_of(path, "lines", order.lines)
    distractors = ids_of(path, "distractors", order.distractors)
    yield from check_unique(document, [*lines, *distractors], "line")


def _after(order: OrderEntry, path: Path) -> Iterator[tuple[str, str, Path]]:
    """A line, one that must stand above it, and where that is said."""
    for number, line in enumerate(order.lines):
        for place, before in enumerate(line.after):
            yield line.id, before, (*path, "lines", number, "after", place)


def _references(document: Document, order: OrderEntry, path: Path) -> Iterator[Problem]:
    lines = [line.id for line in order.lines]
    distractors = [line.id for line in order.distractors]
    for line_id, before, where in _after(order, path):
        if before == line_id:
            yield document.problem(where, "a line cannot stand after itself: take this out")
        elif before in distractors:
            message = f"`{before}` is a distractor, which has no place in the program: take it out"
            yield document.problem(where, message)
        elif before not in lines:
            message = f"`after` must name other lines: {', '.join(lines)}"
            yield document.problem(where, message)


def _cycles(document: Document, order: OrderEntry, path: Path) -> Iterator[Problem]:
    where = {(line_id, before): where for line_id, before, where in _after(order, path)}
    done: set[str] = set()

    def visit(trail: tuple[str, ...], after: Mapping[str, Sequence[str]]) -> Iterator[Problem]:
        here = trail[-1]
        for before in after[here]:
            if before in trail:
                cycle = " -> ".join((*trail[trail.index(before) :], before))
                message = f"these lines wait for one another: {cycle}; take one `after` out"
                yield document.problem(where[here, before], message)
            elif before not in done:
                yield from visit((*trail, before), after)
        done.add(here)

    after = {line.id: line.after for line in order.lines}
    for line_id in after:
        if line_id not in done:
            yield from visit((line_id,), after)


def _own_order(document: Document, order: OrderEntry, path: Path) -> Iterator[Problem]:
    places = {line.id: number for number, line in enumerate(order.lines)}
    for line_id, before, where in _after(order, path):
        if places[before] > places[line_id]:
            message = f"`{before}` stands below this line: write `lines` in a right order"
            yield document.problem(where, message)


def _solutions(document: Document, order: OrderEntry, path: Path) -> Iterator[Problem]:
    places = {line.id: number for number, line in enumerate(order.lines)}
    for lines in _right_orders(order.lines):
        wrong = why_not_python("\n".join(_code(line) for line in lines), "<order>", is_part=True)
        if wrong is None:
            continue
        ids = ", ".join(line.id for line in lines)
        is_own = list(lines) == order.lines
        where = "in the order of `lines`" if is_own else f"`after` allows the order {ids}, where"
        guilty = places[_line_at(lines, wrong.line).id]
        message = f"{where} this is not Python: {wrong.message}"
        yield document.problem((*path, "lines", guilty, "code"), message)
        return


def _code(line: LineEntry) -> str:
    return line.code.rstrip("\n")


def _line_at(lines: Sequence[LineEntry], number: int | None) -> LineEntry:
    """The entry that holds a line of the joined code; the last one where it ends too early."""
    passed = 0
    for line in lines:
        passed += 1 + _code(line).count("\n")
        if number is not None and number <= passed:
            return line
    return lines[-1]


def _right_orders(lines: Sequence[LineEntry]) -> Iterator[list[LineEntry]]:
    """The file's order; then orders with each line first, last, and below each other one.

    All orders of a dozen lines would be too many. Whether code parses hangs on which line stands
    directly above which, so that these find an indented line that can lose its header.
    """
    yield list(lines)
    above = _all_above(lines)
    for line in lines:
        if not above[line.id]:
            yield [line, *(other for other in lines if other is not line)]
        if not any(line.id in names for names in above.values()):
            yield [*(other for other in lines if other is not line), line]
    for upper in lines:
        for lower in lines:
            needed = (above[upper.id] | above[lower.id]) - {upper.id}
            is_between = any(upper.id in above[name] for name in needed)
            if upper is lower or lower.id in above[upper.id] or is_between:
                continue
            first = [line for line in lines if line.id in needed]
            pair = (*first, upper, lower)
            yield [*pair, *(line for line in lines if line not in pair)]


def _all_above(lines: Sequence[LineEntry]) -> dict[str, set[str]]:
    """Per line all that must stand above it, directly or not; lines are in a right order."""
    found: dict[str, set[str]] = {}
    for line in lines:
        found[line.id] = set(line.after).union(*(found[before] for before in line.after))
    return found


def check_fill(document: Document, fill: FillEntry, path: Path) -> Iterator[Problem]:
    """Ids, gaps and texts, and that the right code is Python."""
    gaps = list(_gaps(document, fill, path))
    yield from gaps
    for number, gap in enumerate(fill.gaps):
        yield from _wrong_texts(document, gap, (*path, "gaps", number))
    if not gaps:
        yield from _filled_code(document, fill, path)


def _gaps(document: Document, fill: FillEntry, path: Path) -> Iterator[Problem]:
    named = ids_of(path, "gaps", fill.gaps)
    yield from check_unique(document, named, "gap")
    cut = cut_at_gaps(fill.code, frozenset(name for name, _ in named))
    times = Counter(piece for piece, is_gap in cut if is_gap)
    for name, where in dict(named).items():
        if times[name] == 0:
            message = f"the gap `{name}` is not in `code`: write `{{{{{name}}}}}` where it is"
            yield document.problem(where, message)
        elif times[name] > 1:
            message = f"the gap `{name}` is {times[name]} times in `code`: declare a gap for each"
            yield document.problem(where, message)


def _wrong_texts(document: Document, gap: GapEntry, path: Path) -> Iterator[Problem]:
    right = {_form(answer, gap) for answer in gap.answers}
    seen: set[str] = set()
    for number, wrong in enumerate(gap.wrong):
        for place, text in enumerate(wrong.answers):
            where = (*path, "wrong", number, "answers", place)
            form = _form(text, gap)
            if form in right:
                message = f"`{text}` is among the right `answers` of this gap too: keep one"
                yield document.problem(where, message)
            elif form in seen:
                yield document.problem(where, f"the wrong text `{text}` is here twice: keep one")
            seen.add(form)


def _form(text: str, gap: GapEntry) -> str:
    """What texts that count as the same have in common."""
    return (text.casefold() if gap.ignore_case else text).strip()


def _filled_code(document: Document, fill: FillEntry, path: Path) -> Iterator[Problem]:
    first = {gap.id: gap.answers[0].strip() for gap in fill.gaps}
    cut = cut_at_gaps(fill.code.rstrip("\n"), frozenset(first))
    source = "".join(first[piece] if is_gap else piece for piece, is_gap in cut)
    wrong = why_not_python(source, "<fill>", is_part=True)
    if wrong is not None:
        message = f"`code` with the first answer in each gap is not Python: {wrong}"
        yield document.problem((*path, "code"), message)
