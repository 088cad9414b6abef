from __future__ import annotations

from callpath_modeler.report.page.markup import Html, escaped, joined, number, tag
from cells import cells


def test_text_is_escaped_and_markup_is_not():
    assert tag("p", "a < b & 'c'", tag("b", "d")) == "<p>a &lt; b &amp; &#x27;c&#x27;<b>d</b></p>"


def test_attributes_cannot_be_left_by_what_they_hold():
    told = tag("td", title='"><script>alert(1)</script>')
    assert told == '<td title="&quot;&gt;&lt;script&gt;alert(1)&lt;/script&gt;"></td>'


def test_attributes_are_named_as_in_html_and_left_out_where_they_say_nothing():
    made = tag("th", class_="n", aria_label="x", hidden=True, title=None, open=False, x1=1.5)
    assert made == '<th class="n" aria-label="x" hidden x1="1.5"></th>'


@cells("bad", ["\0", "\x1b", "\x7f", "\udc80", "\ufffe"])
def test_what_no_html_may_hold_is_replaced(bad):
    assert escaped(f"a{bad}b") == "a\N{REPLACEMENT CHARACTER}b"


def test_markup_stays_markup_however_often_it_is_joined():
    assert joined(joined(Html("<br>"), "<"), ">") == "<br>&lt;&gt;"


def test_a_number_is_there_for_people_and_in_full_for_machines():
    assert number(1 / 3, "0.333") == f'<data value="{1 / 3!r}">0.333</data>'
