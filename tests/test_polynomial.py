"""The movable scene of the satisfiability chapter: what the browser computes is what Python computes, by mouse and by keys."""

import numpy as np
import pytest
from conftest import ROOT

from binding import ideal

PAGE = """<!doctype html><html lang="en"><style>{css}</style><script>{js}</script>
<body style="width: 700px"><div class="binding-polynomial"><img alt="first picture"></div></body></html>"""


def expected(degrees, present, k):
    """Threshold and gap by the coefficients; the browser takes means of p and p² over samples instead."""
    angles = np.radians(degrees)
    scores = ideal.moment_curve(angles, k) @ ideal.normal(angles[present], k)
    return scores[present[0]], scores[present].min() - np.delete(scores, present).max()


@pytest.fixture
def scene(browser):
    page = browser.new_page()
    errors = []
    page.on("pageerror", lambda error: errors.append(error))
    static = ROOT / "_static"
    page.set_content(PAGE.format(css=(static / "polynomial.css").read_text(), js=(static / "polynomial.js").read_text()))
    page.locator(".binding-polynomial-report").wait_for()
    yield page
    page.close()
    assert errors == []


def read(page):
    data = page.locator(".binding-polynomial").evaluate("root => [root.dataset.threshold, root.dataset.gap]")
    return [float(value) for value in data]


def assert_agrees(page, degrees, present, k):
    """Python is within ``rounding``; the browser sums 360 samples p² ≤ 4^j and takes the root of 2(mean p² − mean² p) ≥ 4^{1−j}.

    The difference is off by at most 4 · 360 · 4^j eps, its root by 180 · 16^j eps relative, a score of at most 2 by twice that.
    """
    for got, want in zip(read(page), expected(degrees, present, k), strict=True):
        assert abs(got - want) <= 2 * ideal.rounding(k) + 400 * 16.0 ** len(present) * np.finfo(float).eps


def test_first_scene_and_every_k(scene):
    assert_agrees(scene, [0, 60, 120, 180, 240, 300], [0, 1], 2)
    for k in (3, 4):
        scene.get_by_label("largest scene").select_option(str(k))
        assert_agrees(scene, [0, 60, 120, 180, 240, 300], [0, 1], k)


def test_keys_turn_an_atom_and_take_it_in(scene):
    atom = scene.get_by_role("slider", name="angle of atom 3")
    atom.focus()
    for key in ("ArrowRight", "PageUp", "ArrowLeft", "ArrowLeft"):
        scene.keyboard.press(key)
    assert atom.get_attribute("aria-valuetext") == "148 degrees, absent"
    assert_agrees(scene, [0, 60, 148, 180, 240, 300], [0, 1], 2)
    scene.get_by_label("largest scene").select_option("3")
    scene.keyboard.press("Tab")
    atom.focus()
    scene.keyboard.press("Space")
    assert_agrees(scene, [0, 60, 148, 180, 240, 300], [0, 1, 2], 3)


def test_mouse_drags_and_clicks(scene):
    atom = scene.get_by_role("slider", name="angle of atom 1")
    box = atom.bounding_box()
    scene.mouse.click(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    assert_agrees(scene, [0, 60, 120, 180, 240, 300], [1], 2)
    ring = scene.locator(".ring").bounding_box()
    scene.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    scene.mouse.down()
    scene.mouse.move(ring["x"] + ring["width"] / 2, ring["y"] + ring["height"] + 20, steps=5)
    scene.mouse.up()
    assert atom.get_attribute("aria-valuetext") == "270 degrees, absent"
    assert_agrees(scene, [270, 60, 120, 180, 240, 300], [1], 2)


def test_a_scene_larger_than_k_is_refused_in_words_and_one_atom_stays(scene):
    scene.get_by_label("largest scene").select_option("1")
    assert "degree 2" in scene.locator(".binding-polynomial-report").inner_text()
    assert scene.locator(".binding-polynomial").get_attribute("data-gap") == ""
    for name in ("angle of atom 1", "angle of atom 2"):
        scene.get_by_role("slider", name=name).press("Enter")
    assert scene.get_by_role("slider", name="angle of atom 2").get_attribute("aria-valuetext") == "60 degrees, present"
    assert_agrees(scene, [0, 60, 120, 180, 240, 300], [1], 1)


def test_two_atoms_in_one_place_have_gap_zero(scene):
    atom = scene.get_by_role("slider", name="angle of atom 3")
    for _ in range(30):
        atom.press("ArrowLeft")
    assert atom.get_attribute("aria-valuenow") == "60"
    assert read(scene)[1] == 0
    scene.get_by_role("button", name="Start again").click()
    assert_agrees(scene, [0, 60, 120, 180, 240, 300], [0, 1], 2)
