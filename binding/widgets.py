"""Pictures that a reader moves, with no kernel behind them: every frame is drawn beforehand."""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import ipywidgets
from matplotlib.figure import Figure

from binding.plots import img

FRAME_BUDGET = 400_000
"""Bytes of frames that one widget may put into a page, before compression."""


class Explorer(ipywidgets.VBox):
    """Sliders over a stack of frames; made by :func:`explore`."""

    def __init__(self, axes: Mapping[str, Sequence[Any]], labels: Mapping[str, str], frame: Callable[..., str]) -> None:
        self._axes = {name: tuple(values) for name, values in axes.items()}
        self._stacks: dict[str, list[ipywidgets.Stack]] = {name: [] for name in axes}
        picture = self._build(list(axes), {}, frame)
        sliders = [self._slider(name, labels.get(name, name)) for name in axes]
        self._first = frame(**{name: values[0] for name, values in self._axes.items()})
        super().__init__([*sliders, picture])
        self.add_class("binding-explorer")

    def _build(self, names: list[str], chosen: dict[str, Any], frame: Callable[..., str]) -> ipywidgets.Widget:
        if not names:
            return ipywidgets.HTML(frame(**chosen))
        name, *rest = names
        frames = [self._build(rest, {**chosen, name: value}, frame) for value in self._axes[name]]
        stack = ipywidgets.Stack(frames, selected_index=0)
        self._stacks[name].append(stack)
        return stack

    def _slider(self, name: str, label: str) -> ipywidgets.SelectionSlider:
        slider = ipywidgets.SelectionSlider(
            options=[(str(value), index) for index, value in enumerate(self._axes[name])],
            description=label,
            style={"description_width": "initial"},
            layout={"width": "min(100%, 28rem)"},
        )
        for stack in self._stacks[name]:
            ipywidgets.jslink((slider, "index"), (stack, "selected_index"))
        return slider

    def __repr__(self) -> str:
        return "Explorer(" + " x ".join(f"{name}: {len(values)}" for name, values in self._axes.items()) + ")"

    def _ipython_display_(self) -> None:
        from IPython.display import HTML, display

        display(HTML(f"<noscript>{self._first}</noscript>"))
        display(self._repr_mimebundle_(), raw=True)


def explore(
    draw: Callable[..., Figure | str],
    *,
    alt: Callable[..., str],
    labels: Mapping[str, str] | None = None,
    **axes: Sequence[Any],
) -> Explorer:
    """A picture with one slider an axis, which moves on the static site and in JupyterLab alike.

    ``draw(**values)`` gives the figure (or SVG text) and ``alt(**values)`` its alternative text for every point of the grid
    ``axes[0] × axes[1] × …``; with scripts off, the first frame shows. ``labels`` names the sliders (``\\(δ\\)`` is typeset).

    Raises ``ValueError`` for no axis, more than three, an axis with fewer than two values or with two values of the same
    text, or frames over ``FRAME_BUDGET`` bytes.
    """
    if not 1 <= len(axes) <= 3:
        raise ValueError(f"explore takes one to three axes, got {len(axes)}: {', '.join(axes) or 'none'}")
    for name, values in axes.items():
        if len(values) < 2 or len({str(value) for value in values}) < len(values):
            raise ValueError(f"axis {name} needs two or more values that read differently, got {list(values)}")
    grid = math.prod(len(values) for values in axes.values())
    frames: dict[str, str] = {}
    weight = 0

    def frame(**values: Any) -> str:
        nonlocal weight
        key = str(values)
        if key not in frames:
            frames[key] = img(draw(**values), alt(**values))
            weight += len(frames[key])
            if weight > FRAME_BUDGET:
                weighed = f"{len(frames)} of {grid} frames weigh {weight:,} bytes, over {FRAME_BUDGET:,}"
                raise ValueError(f"{weighed}: use fewer values or simpler frames")
        return frames[key]

    return Explorer(axes, labels or {}, frame)
