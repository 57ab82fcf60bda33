"""No template and no code goes round the one way that untrusted text takes onto a page."""

from pathlib import Path

import pytest

from tests.repo.tree import ROOT, tell
from tests.repo.untrusted import ways_round

pytestmark = pytest.mark.rule("A13")


def test_nothing_goes_round_it() -> None:
    found = ways_round(ROOT)
    assert not found, tell(found)


@pytest.mark.parametrize(
    ("place", "text"),
    [
        ("templates/x.html", "<p>{{ name|safe }}</p>"),
        ("templates/x.html", "{% autoescape off %}"),
        ("templates/x.html", "{{ text | urlize }}"),
        ("templates/x.html", "<a onclick='x()'>"),
        ("templates/x.html", "<script>x()</script>"),
        ("templates/x.html", "<a title={{ name }}>"),
        ("jobs/views/x.py", "from django.utils.safestring import mark_safe\nmark_safe('x')"),
        ("jobs/views/x.py", "from django.utils.safestring import SafeString\nSafeString('x')"),
    ],
)
def test_each_way_round_it_is_seen(place: str, text: str, tmp_path: Path) -> None:
    (tmp_path / ".gitignore").write_text("")
    (tmp_path / place).parent.mkdir(parents=True)
    (tmp_path / place).write_text(text)
    assert ways_round(tmp_path)


def test_what_templates_do_otherwise_is_no_way_round_it(tmp_path: Path) -> None:
    (tmp_path / ".gitignore").write_text("")
    (tmp_path / "templates").mkdir()
    text = '<a href="{{ url }}" title="{{ name|safe_title }}">{{ name|safe_text }}</a><script src="{{ x }}"></script>'
    (tmp_path / "templates/x.html").write_text(text)
    assert not ways_round(tmp_path)
