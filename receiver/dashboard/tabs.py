"""The tabs on top, what needs a person first, and the pages of each."""

from typing import NamedTuple


class Page(NamedTuple):
    """A page by its endpoint, its name, and the endpoints of pages that open from it."""

    endpoint: str
    name: str
    opens: tuple[str, ...] = ()


class Tab(NamedTuple):
    """Pages of one subject; the tab has the name of the first, and leads there."""

    pages: tuple[Page, ...]

    def has(self, endpoint: str) -> bool:
        """Whether a page, or one that opens from it, is in this tab."""
        return any(endpoint == page.endpoint or endpoint in page.opens for page in self.pages)

    def shows(self, endpoint: str) -> bool:
        """Whether the other pages of the tab are offered on this one."""
        return len(self.pages) > 1 and any(endpoint == page.endpoint for page in self.pages)


TABS = (
    Tab(
        (
            Page("admin.issues", "Issues", ("admin.issue",)),
            Page("admin.alerts", "Alerts"),
            Page("admin.stopped_steps", "Stopped steps"),
        )
    ),
    Tab(
        (
            Page("admin.events", "Events", ("admin.event", "admin.send_again", "admin.diff", "admin.edit")),
            Page("admin.client_commands", "Commands"),
            Page("admin.bulks", "Bulk replays", ("admin.bulk", "admin.bulk_new")),
        )
    ),
    Tab((Page("admin.rejected", "Rejected", ("admin.refusal",)),)),
    Tab((Page("admin.sources", "Sources", ("admin.source",)),)),
    Tab((Page("admin.handlers", "Handlers"), Page("admin.limits", "Limits and breakers"))),
    Tab((Page("admin.overview", "Overview"), Page("admin.audit", "Audit"))),
)
