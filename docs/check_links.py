"""Check that all links within the built site lead somewhere, down to their anchors.

Usage: python docs/check_links.py [docs/_build/html]; the exit status is 1 if one does not.
"""

import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit


class Page(HTMLParser):
    """Collects what a page links to, and what can be linked to in it."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.links: set[str] = set()
        self.anchors: set[str] = set()
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:  # noqa: ARG002
        for name, value in attrs:
            if name in ("href", "src") and value:
                self.links.add(value)
            if name in ("id", "name") and value:
                self.anchors.add(value)


def dead_links(site: Path) -> tuple[int, list[str]]:
    """Return how many links within the site there are, and those that lead nowhere."""
    pages = {path.resolve(): Page(path) for path in sorted(site.rglob("*.html"))}
    count, dead = 0, []
    for path, page in pages.items():
        for link in sorted(page.links):
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            count += 1
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            anchor = unquote(parts.fragment)
            missing = not target.exists()
            if missing or (anchor and target in pages and anchor not in pages[target].anchors):
                dead.append(f"{path.relative_to(site.resolve())}: {link}")
    return count, dead


def main() -> None:
    site = Path(sys.argv[1] if len(sys.argv) > 1 else "docs/_build/html")
    count, dead = dead_links(site)
    if not count:
        sys.exit(f"there are no pages in {site}; make docs builds them")
    print(*dead, sep="\n" if dead else "")
    print(f"{count} links within the site, {len(dead)} of them dead")
    sys.exit(bool(dead))


if __name__ == "__main__":
    main()
