"""What a page needs to put a computed number into its prose; everything else of a page is text."""

from typing import Any


def glue(**values: Any) -> None:
    """Keep values under their names for the text of this page: write ``{glue:text}`name``` where the number belongs.

    A value is shown as it is printed, so round it first: ``glue(distance=f"{d:.3f}")``. The same values come back in the
    stored outputs of the page, where the tests compare them with a fresh run.

    Raises ``ValueError`` for a value that prints as nothing.
    """
    from IPython.display import display

    for name, value in values.items():
        text = str(value)
        if not text.strip():
            raise ValueError(f"{name} = {value!r} prints as nothing; the prose needs a value")
        prefix = "application/papermill.record/"
        data = {prefix + "text/plain": text}
        display(data, metadata={"scrapbook": {"name": name, "mime_prefix": prefix}}, raw=True)
