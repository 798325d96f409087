"""Every sentence of the interface is translated, with the same placeholders."""

import re
from collections.abc import Iterator

import pytest
from babel.messages.catalog import Message
from babel.messages.extract import extract_from_dir
from babel.messages.pofile import read_po

from tests.app.rendering import ROOT, TEMPLATES

INTERFACE = ROOT / "app" / "locale" / "ja" / "interface.po"
PLACEHOLDER = re.compile(r"%\(\w+\)s|\{\w+\}")
Ids = tuple[str, ...]


def message_ids(message_id: object) -> Ids:
    """(msgid,) or (msgid, msgid_plural)."""
    return (message_id,) if isinstance(message_id, str) else tuple(map(str, message_id))  # type: ignore[call-overload]


def used() -> Iterator[Ids]:
    templates = extract_from_dir(
        TEMPLATES,
        method_map=[("**.html", "jinja2")],
        options_map={"**.html": {"newstyle_gettext": "true", "silent": "false"}},
    )
    routes = extract_from_dir(ROOT / "app", method_map=[("**.py", "python")])
    for _, _, message_id, _, _ in (*templates, *routes):
        yield message_ids(message_id)


def translated() -> dict[Ids, Message]:
    with INTERFACE.open("rb") as file:
        catalogue = read_po(file, locale="ja", abort_invalid=True)
    return {message_ids(message.id): message for message in catalogue if message.id}


@pytest.mark.parametrize("ids", sorted(set(used())), ids=lambda ids: ids[0][:40])
def test_sentence_is_translated_with_its_placeholders(ids: Ids) -> None:
    message = translated()[ids]
    found = (message.string,) if isinstance(message.string, str) else tuple(message.string or ())
    assert found
    assert all(found)
    for sentence in found:
        assert set(PLACEHOLDER.findall(sentence)) == set(PLACEHOLDER.findall(ids[-1]))


def test_no_translation_is_left_over() -> None:
    assert set(translated()) - set(used()) == set()
