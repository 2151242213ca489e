"""What a page needs to put a computed number into its prose; everything else of a page is text."""

from importlib import resources
from pathlib import Path
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
        # As a literal: MyST-NB evaluates what it is given, and would show 0.210 as 0.21 and 1,000 as (1, 0).
        data = {prefix + "text/plain": repr(text)}
        display(data, metadata={"scrapbook": {"name": name, "mime_prefix": prefix}}, raw=True)


def stored_run(name: str) -> Path:
    """The file of a stored run, ``binding/data/runs/<name>``: what a page shows that was not measured while it was executed.

    Raises ``ValueError`` if there is no such run, with the names of those that there are.
    """
    folder = Path(str(resources.files("binding"))) / "data" / "runs"
    if not (folder / name).is_file():
        raise ValueError(f"no stored run {name!r}; there are: {', '.join(sorted(path.name for path in folder.iterdir()))}")
    return folder / name
