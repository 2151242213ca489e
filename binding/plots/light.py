"""Small SVG written by hand, for widgets with more frames than drawn letters leave room for: here letters stay text."""

import html

from binding.plots import INK

FONT = "DejaVu Sans,Verdana,sans-serif"
SIZE = 14


def picture(width: int, height: int, *parts: str) -> str:
    """An SVG image of this size in pixels, made of shapes in the order they are painted."""
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}"'
        f' font-family="{FONT}" font-size="{SIZE}" fill="{INK}">{"".join(parts)}</svg>'
    )


def text(x: float, y: float, string: str, **attributes: str | float) -> str:
    """Letters that begin at x (or end or stand there, by ``text_anchor``) on the line y."""
    return f'<text x="{x:g}" y="{y:g}"{_listed(attributes)}>{html.escape(string, quote=False)}</text>'


def box(x: float, y: float, width: float, height: float, **attributes: str | float) -> str:
    """A rectangle with its corner at (x, y)."""
    return f'<rect x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}"{_listed(attributes)}/>'


def _listed(attributes: dict[str, str | float]) -> str:
    return "".join(f' {name.replace("_", "-")}="{value}"' for name, value in attributes.items())
