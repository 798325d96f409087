"""Fills templates as the site does, without the site, and reads what came out."""

from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from app.i18n import Language, load_translations, other_than
from app.panels.contexts import SiteContext

ROOT = Path(__file__).parents[2]
TEMPLATES = ROOT / "templates"
VOID = frozenset({"meta", "link", "input", "br", "hr", "img"})


def render(language: Language, name: str, **context: object) -> str:
    """Fill one template in one language."""
    environment = Environment(
        loader=FileSystemLoader(TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        extensions=["jinja2.ext.i18n"],
        trim_blocks=True,
        lstrip_blocks=True,
    )
    install = environment.install_gettext_translations  # type: ignore[attr-defined]
    install(load_translations()[language], newstyle=True)
    site = SiteContext(
        language=language,
        other_language=other_than(language),
        other_language_url=f"/{other_than(language)}/",
        csp_nonce="nonce",
        assets_stamp="stamp",
        is_unsandboxed=True,
        engine_problem="no",
    )
    return environment.get_template(name).render(
        site=site,
        asset=lambda path: f"/static/vendor/{path}",
        url_for_language=lambda wanted: f"/{wanted}/",
        **context,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Element:
    """A start tag."""

    tag: str
    attributes: dict[str, str]


@dataclass(slots=True)
class _Reader(HTMLParser):
    elements: list[Element] = field(default_factory=list)
    open_tags: list[str] = field(default_factory=list)
    text: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        HTMLParser.__init__(self, convert_charrefs=True)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append(
            Element(tag=tag, attributes={name: value or "" for name, value in attrs})
        )
        if tag not in VOID:
            self.open_tags.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        if tag not in VOID:
            self.open_tags.pop()

    def handle_endtag(self, tag: str) -> None:
        assert self.open_tags, f"</{tag}> closes nothing"
        assert self.open_tags.pop() == tag, f"</{tag}> closes another element"

    def handle_data(self, data: str) -> None:
        self.text.append(data)


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """The elements of a page or fragment in order, and all of its text."""

    elements: tuple[Element, ...]
    text: str

    def all(self, tag: str) -> list[Element]:
        return [element for element in self.elements if element.tag == tag]

    def values(self, attribute: str) -> list[str]:
        """Values of an attribute, wherever it stands."""
        return [e.attributes[attribute] for e in self.elements if attribute in e.attributes]


def read(html: str) -> Document:
    """Parse markup; every element must be closed where it was opened."""
    reader = _Reader()
    reader.feed(html)
    reader.close()
    assert not reader.open_tags, f"never closed: {reader.open_tags}"
    return Document(elements=tuple(reader.elements), text="".join(reader.text))
