"""Under /admin/docs: each page of the documents, their links, and a search."""

import re
from html.parser import HTMLParser

import pytest

from hookonce.receiver.dashboard.documents import search


class Seen(HTMLParser):
    """The ids and the addresses of links on a page."""

    def __init__(self, page):
        super().__init__()
        self.ids, self.links = [], []
        self.feed(page)

    def handle_starttag(self, tag, attrs):
        told = dict(attrs)
        self.ids += [told["id"]] if "id" in told else []
        self.links += [told["href"]] if tag == "a" and "href" in told else []


def test_documents_are_listed_and_each_link_to_one_leads_to_its_heading(browser):
    listed = {link for link in Seen(browser.get("/admin/docs").text).links if link.startswith("/admin/docs/")}

    seen = {link: Seen(browser.get(link).text) for link in listed}

    followed = {
        (address.partition("#")[0] or page, address.partition("#")[2])
        for page, each in seen.items()
        for address in each.links
        if address.startswith(("/admin/docs/", "#")) and address != "#main"
    }
    assert listed == {f"/admin/docs/{name}" for name in search.names()}
    assert [page for page, each in seen.items() if len(each.ids) != len(set(each.ids))] == []
    assert len(followed) > 300
    assert [(page, name) for page, name in followed if name and name not in seen[page].ids] == []


@pytest.mark.parametrize(
    "asked", ["two stripe accounts", "How long is what kept?", "Slack", "gdpr", "keep_events"]
)
def test_search_leads_to_the_section(browser, asked):
    (best, *_) = search.find(asked.split())

    (first,) = re.findall(r'<h2><a href="([^"#]+)#', browser.get(f"/admin/docs?q={asked}").text)[:1]

    assert first == f"/admin/docs/{best.name}"


def test_search_shows_words_as_they_are_typed_and_no_markup(browser):
    page = browser.get("/admin/docs?q=<xyzzy>qwertzuiop").text

    assert "&lt;xyzzy&gt;qwertzuiop" in page
    assert "No page has “qwertzuiop”" in page


def test_search_leads_to_the_word_that_was_meant(browser):
    page = browser.get("/admin/docs?q=retenton").text

    assert 'did you mean <a href="?q=retention">retention</a>?' in page


def test_page_that_is_not_among_the_documents_is_not_shown(browser):
    assert browser.get("/admin/docs/../README").status_code == 404
    assert browser.get("/admin/docs/decisions/0005-postgresql-only").status_code == 404
