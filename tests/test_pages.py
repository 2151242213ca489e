"""Values that a page computes arrive in its prose as they were written."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from binding.pages import glue, stored_run

KEY = "application/papermill.record/text/plain"


@given(st.sampled_from(["0.210", "1,000", "12%", "1e-9", "⌊N/2⌋", "'", "0x10", "007"]) | st.text(min_size=1).filter(str.strip))
def test_glued_text_reaches_the_prose_unchanged(text: str) -> None:
    """Read back as MyST-NB reads it for {glue:text} with no format of its own."""
    from myst_nb.core.variables import format_plain_text

    stored: list[Any] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("IPython.display.display", lambda data, **_: stored.append(data))
        glue(name=text)
    assert format_plain_text(stored[0][KEY], "s") == text


def test_a_value_that_prints_as_nothing_is_refused() -> None:
    with pytest.raises(ValueError, match="name = ' '"):
        glue(name=" ")


def test_a_stored_run_that_is_missing_is_named() -> None:
    assert stored_run("throttle-laptop.json").is_file()
    with pytest.raises(ValueError, match=r"no stored run 'nowhere.json'; there are: audit-minilm.json, "):
        stored_run("nowhere.json")
