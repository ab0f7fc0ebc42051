import re
from html import unescape

import pytest

from hookonce.receiver.dashboard.highlighting import MAX_HIGHLIGHTED, highlighted

TEXTS = [
    (
        "python",
        'def credit(event):\n\n    """Text\n    of two lines."""\n    raise KeyError(f"<{event}>")  # why',
    ),
    ("python", "    half = (of,\n\ta = '''statement & <script>\n"),
    ("json", '{\n  "a": [1.50, true, null, "<b>&amp;\\""],\n  "a": {}\n}'),
    ("json", '{"cut": "in the mid'),
    ("json", ""),
    ("json", "[\n" + "1,\n" * MAX_HIGHLIGHTED),
]


@pytest.mark.parametrize(("language", "text"), TEXTS)
def test_text_is_what_it_was_and_no_element_goes_over_a_line(language, text):
    html = str(highlighted(text, language))

    lines = html.split("\n")
    assert [unescape(re.sub("<[^>]+>", "", line)) for line in lines] == text.split("\n")
    assert all(line.count("<span") == line.count("</span>") for line in lines)


def test_kinds_of_tokens_have_classes_of_the_style_sheet():
    code = str(highlighted("@on\ndef credit(x):  # why\n    return len('a') + 1", "python"))

    assert re.findall('class="([a-z]+)">([^<]+)', code) == [
        ("nd", "@on"),
        ("k", "def"),
        ("nf", "credit"),
        ("c", "# why"),
        ("k", "return"),
        ("nb", "len"),
        ("s", "'a'"),
        ("m", "1"),
    ]
