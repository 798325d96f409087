"""Reads one YAML file into plain values that know their lines and columns.

May import ruamel.yaml. Lesson files may come from strangers, so the file is composed event by
event and the first thing out of bounds ends it: size, depth, number of values, anchors, aliases
and tags. Nothing but text, numbers, true, false and null can come out.
"""

import re
from collections.abc import Iterator
from pathlib import Path as FilePath

from ruamel.yaml import YAML
from ruamel.yaml.error import MarkedYAMLError, YAMLError
from ruamel.yaml.events import (
    AliasEvent,
    CollectionStartEvent,
    DocumentStartEvent,
    Event,
    MappingEndEvent,
    MappingStartEvent,
    NodeEvent,
    ScalarEvent,
    SequenceEndEvent,
    SequenceStartEvent,
    StreamStartEvent,
)
from ruamel.yaml.reader import ReaderError

from app.schema.positions import Document, Path, Place, Value
from app.schema.problems import LessonError, Problem

MAX_FILE_BYTES = 256 * 1024
MAX_DEPTH = 24
MAX_VALUES = 10_000

_NULL = ("", "~", "null")
_TRUTH = {"true": True, "false": False}
_INT = re.compile(r"[-+]?[0-9]{1,18}")
_FLOAT = re.compile(r"[-+]?([0-9]+\.[0-9]*|\.[0-9]+|[0-9]+(?=[eE]))([eE][-+]?[0-9]{1,3})?")
_NOT_TEXT = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff]")


def read_yaml(path: FilePath, shown_name: str) -> Document:
    """Parse a file. Raises: LessonError with one problem."""
    text = _read_text(path, shown_name)
    # The round-trip scanner marks the folds of a `>` text with a control character of its own.
    composer = _Composer(shown_name, YAML(typ="safe", pure=True).parse(text))
    try:
        return composer.document()
    except LessonError:
        raise
    except MarkedYAMLError as error:
        raise _yaml_problem(shown_name, error) from None
    except ReaderError as error:
        before = text[: error.position]
        column = len(before) - before.rfind("\n") - 1
        place = Place(line=before.count("\n"), column=column)
        message = f"this character (U+{ord(text[error.position]):04X}) cannot be in a YAML file"
        raise _single(shown_name, place, message) from None
    except (YAMLError, ValueError) as error:
        first = str(error).partition("\n")[0] or "it cannot be parsed"
        raise _single(shown_name, composer.last, f"is not YAML: {first}") from None


def _read_text(path: FilePath, shown_name: str) -> str:
    top = Place(line=0, column=0)
    try:
        with path.open("rb") as file:
            raw = file.read(MAX_FILE_BYTES + 1)
    except OSError as error:
        raise _single(shown_name, top, f"cannot be read: {error.strerror}") from None
    if len(raw) > MAX_FILE_BYTES:
        message = f"is too long: a file has at most {MAX_FILE_BYTES // 1024} KiB; split it"
        raise _single(shown_name, top, message)
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = raw[: error.start].count(b"\n")
        message = "is not UTF-8 text: save the file as UTF-8"
        raise _single(shown_name, Place(line=line, column=0), message) from None


class _Composer:
    """Turns parser events into values, and notes where each stands."""

    def __init__(self, file: str, events: Iterator[Event]) -> None:
        self._file = file
        self._events = events
        self._values: dict[Path, Place] = {}
        self._keys: dict[Path, Place] = {}
        self.last = Place(line=0, column=0)
        """Where the newest event began."""

    def document(self) -> Document:
        """The whole file. Raises: LessonError, ruamel's YAMLError."""
        event = self._next()
        while isinstance(event, StreamStartEvent | DocumentStartEvent):
            event = self._next()
        if not isinstance(event, MappingStartEvent):
            raise self._wrong("must begin with keys, like `id: my-lesson`")
        root = self._mapping((), event)
        self._next()
        if isinstance(self._next(), DocumentStartEvent):
            raise self._wrong("a file holds one document: take out this `---` and what follows")
        return Document(file=self._file, root=root, values=self._values, keys=self._keys)

    def _next(self) -> Event:
        event = next(self._events)
        self.last = Place(line=event.start_mark.line, column=event.start_mark.column)
        if isinstance(event, AliasEvent) or (isinstance(event, NodeEvent) and event.anchor):
            raise self._wrong("anchors and aliases (& and *) are not allowed: write it out")
        if isinstance(event, ScalarEvent | CollectionStartEvent) and event.ctag is not None:
            tag = str(event.ctag).replace("tag:yaml.org,2002:", "!!")
            raise self._wrong(f"tags are not allowed: take out `{tag}`")
        return event

    def _wrong(self, message: str) -> LessonError:
        return _single(self._file, self.last, message)

    def _value(self, path: Path, event: Event) -> Value:
        if isinstance(event, MappingStartEvent):
            return self._mapping(path, event)
        if isinstance(event, SequenceStartEvent):
            return self._sequence(path, event)
        assert isinstance(event, ScalarEvent), "no other event begins a value"
        # Where nothing is written there is no place but the key's.
        is_absent = event.implicit[0] and event.value == ""
        self._enter(path, self._keys.get(path) if is_absent else None)
        return self._scalar(event)

    def _enter(self, path: Path, place: Place | None = None) -> None:
        if len(path) > MAX_DEPTH:
            raise self._wrong("is nested too deeply")
        if len(self._values) >= MAX_VALUES:
            raise self._wrong(f"a file holds at most {MAX_VALUES} values; split it")
        self._values[path] = place or self.last

    def _mapping(self, path: Path, event: Event) -> dict[str, Value]:
        self._enter(path)
        found: dict[str, Value] = {}
        while not isinstance(event := self._next(), MappingEndEvent):
            if not isinstance(event, ScalarEvent) or event.value == "":
                raise self._wrong("a key must be one word, like `title:`")
            key = self._text(event)
            if key in found:
                raise self._wrong(f"the key `{key}` is here twice: keep one")
            self._keys[(*path, key)] = self.last
            found[key] = self._value((*path, key), self._next())
        return found

    def _sequence(self, path: Path, event: Event) -> list[Value]:
        self._enter(path)
        found: list[Value] = []
        while not isinstance(event := self._next(), SequenceEndEvent):
            found.append(self._value((*path, len(found)), event))
        return found

    def _scalar(self, event: ScalarEvent) -> Value:
        text = self._text(event)
        is_plain = event.implicit[0]
        if not is_plain:
            return text
        if text in _NULL:
            return None
        if text in _TRUTH:
            return _TRUTH[text]
        if _INT.fullmatch(text):
            return int(text)
        return float(text) if _FLOAT.fullmatch(text) else text

    def _text(self, event: ScalarEvent) -> str:
        text: str = event.value
        bad = _NOT_TEXT.search(text)
        if bad:
            raise self._wrong(f"the character U+{ord(bad.group()):04X} cannot be in a text")
        return text


def _yaml_problem(shown_name: str, error: MarkedYAMLError) -> LessonError:
    said = (error.problem or error.context or "it cannot be parsed").partition("\n")[0]
    # At the end of the file the mistake lies where the unfinished thing began.
    is_at_end = "end of stream" in said
    first, second = error.problem_mark, error.context_mark
    mark = (second or first) if is_at_end else (first or second)
    place = Place(line=mark.line, column=mark.column) if mark else Place(line=0, column=0)
    if "\\t" in said:
        return _single(shown_name, place, "is not YAML: indent with spaces, not with tabs")
    if is_at_end:
        said += " (is a closing quote or bracket missing?)"
    elif "expected <block end>" in said:
        said = "this line is indented differently from those it belongs to"
    elif "mapping values are not allowed" in said:
        said = "a `:` here; put a text that holds `: ` in quotes"
    return _single(shown_name, place, f"is not YAML: {said}")


def _single(file: str, place: Place, message: str) -> LessonError:
    problem = Problem(file=file, line=place.line + 1, column=place.column + 1, message=message)
    return LessonError((problem,))
