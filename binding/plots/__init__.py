"""One look for every picture of the book; the figures themselves stand in one module a chapter beside this file.

A picture is an SVG with a transparent ground, drawn for a light page; the site turns it over for a dark one. It goes onto the
page as an ``<img>`` with alternative text, so that a screen reader gets its numbers and nothing in it can clash with the page.
"""

import html
import io
import re
import urllib.parse
from typing import Any

import matplotlib.pyplot as plt
import matplotlib.style
from cycler import cycler
from matplotlib.axes import Axes
from matplotlib.figure import Figure

INK, SOFT = "#1a1a1a", "#8a8a8a"
BLUE, ORANGE, GREEN, PURPLE, SKY, RED = "#0072b2", "#c2410c", "#00795a", "#a8478b", "#3d8fc2", "#b3261e"
PALETTE = (BLUE, ORANGE, GREEN, PURPLE, SKY, RED)
"""After Okabe and Ito, with the light ones darkened to 4.5 : 1 on white; never the only carrier of a difference."""
MARKERS = ("o", "s", "^", "D", "v", "P")
LINES = ("-", "--", "-.", ":")

STYLE: dict[str, Any] = {
    "figure.figsize": (5.2, 3.3),
    "figure.constrained_layout.use": True,
    "figure.dpi": 100,
    "font.size": 11,
    "font.family": "DejaVu Sans",
    "mathtext.fontset": "dejavusans",
    "axes.prop_cycle": cycler(color=PALETTE),
    "axes.edgecolor": INK,
    "axes.labelcolor": INK,
    "axes.facecolor": "none",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "figure.facecolor": "none",
    "savefig.facecolor": "none",
    "text.color": INK,
    "xtick.color": INK,
    "ytick.color": INK,
    "lines.linewidth": 2,
    "lines.markersize": 6,
    "legend.frameon": False,
    "svg.fonttype": "path",
    "svg.hashsalt": "binding",
}


def figure(width: float = 5.2, height: float = 3.3, **subplots: Any) -> tuple[Figure, Any]:
    """A figure of the book's style and its axes, as ``plt.subplots`` gives them (inches; keep ``width`` at most 6 for phones)."""
    matplotlib.style.use(STYLE)
    return plt.subplots(figsize=(width, height), **subplots)


def svg(fig: Figure) -> str:
    """The figure as SVG text, the same for the same figure; the figure is closed."""
    buffer = io.StringIO()
    with matplotlib.style.context(STYLE):
        fig.savefig(buffer, format="svg", metadata={"Date": None, "Creator": None})
    plt.close(fig)
    text = buffer.getvalue()
    text = re.sub(r"<metadata>.*?</metadata>|<!--.*?-->", "", text[text.index("<svg") :], flags=re.S)
    text = re.sub(r' d="[^"]*"', lambda path: re.sub(r"(\.\d\d)\d+", r"\1", path[0]), text)
    return re.sub(r"\s*\n\s*", " ", text).strip()


def img(picture: Figure | str, alt: str) -> str:
    """The figure (or its SVG text) as an HTML image with alternative text.

    Raises ``ValueError`` if the alternative text is empty: every picture of the book has one, and it states the numbers.
    """
    if not alt.strip():
        raise ValueError("a picture needs alternative text that says what it shows and states its numbers")
    text = picture if isinstance(picture, str) else svg(picture)
    source = "data:image/svg+xml," + urllib.parse.quote(text, safe="/:= ;,'()!@*?$&+")
    style = "max-width:100%;height:auto;background:#fff"
    return f'<img class="binding-figure dark-light" style="{style}" alt="{html.escape(alt)}" src="{source}">'


def show(picture: Figure | str, alt: str) -> None:
    """Show the figure on the page, with alternative text that states its numbers."""
    from IPython.display import HTML, display

    display(HTML(img(picture, alt)))


def label_line(ax: Axes, x: float, y: float, text: str, color: str = INK, **kwargs: Any) -> Any:
    """Write a short label beside a line, in the line's colour; better than a legend where there is room."""
    return ax.annotate(text, (x, y), xytext=(4, 0), textcoords="offset points", color=color, va="center", **kwargs)
