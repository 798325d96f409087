"""Markdown to sanitised HTML. May import markdown-it-py and nh3."""

import nh3
from markdown_it import MarkdownIt

_TAGS = {
    "p", "em", "strong", "code", "pre", "a", "ul", "ol", "li", "blockquote", "br", "hr",
    "h3", "h4", "table", "thead", "tbody", "tr", "th", "td", "sub", "sup",
}  # fmt: skip


class ProseRenderer:
    """Renders trusted-looking text from files that anybody may have written."""

    def __init__(self) -> None:
        self._markdown = MarkdownIt("commonmark", {"html": False}).enable("table")

    def render(self, markdown: str) -> str:
        """HTML of that Markdown: no raw HTML, no script, links to http(s) or this site only."""
        return nh3.clean(
            self._markdown.render(markdown),
            tags=_TAGS,
            attributes={"a": {"href"}, "code": {"class"}, "th": {"align"}, "td": {"align"}},
            url_schemes={"http", "https"},
            link_rel="noopener noreferrer",
        )
