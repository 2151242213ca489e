"""The tests can fail: each fault planted in a copy of the package turns the test named beside it red."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent

FAULTS = [
    # A factor or a sign lost in a formula.
    (
        "ideal.py",
        "pairs.reshape(*phase.shape[:-1], 2 * k) / sqrt(k)",
        "pairs.reshape(*phase.shape[:-1], 2 * k)",
        "test_ideal.py",
        "moment_curve",
    ),
    ("ideal.py", "np.prod(1 - np.cos", "np.prod(1 + np.cos", "test_ideal.py", "coefficients_give"),
    ("ideal.py", "turn * lowered) / 2", "turn * lowered)", "test_ideal.py", "coefficients_are_exact"),
    ("ideal.py", "c = -coefficients", "c = coefficients", "test_ideal.py", "normal_scores"),
    ("ideal.py", "{x + shift, y - shift}", "{x - shift, y + shift}", "test_ideal.py", "swaps_are_mutual"),
    (
        "radon.py",
        "-(weights[~positive] @ points[~positive])",
        "weights[~positive] @ points[~positive]",
        "test_radon.py",
        "lies_in_both_hulls",
    ),
    ("radon.py", "M / sqrt(k * (M - 1) * (M - k))", "M / sqrt(k * M * (M - k))", "test_radon.py", "simplex_attains"),
    ("score.py", "np.asarray(y, float))", "-np.asarray(y, float))", "test_score.py", "attains_the_ceiling"),
    (
        "numerics.py",
        "norm**2 - 1) > (x.shape[-1] + 4)",
        "norm**2 - 1) > 1e15 * (x.shape[-1] + 4)",
        "test_numerics.py",
        "names_row_and_length",
    ),
    ("numerics.py", "(2 * bits - 1)", "(2 * bits - 2)", "test_numerics.py", "signs_are_fair or seed_alone"),
    # Off by one.
    (
        "dichotomies.py",
        "min(N // 2, j, M - j) + 1",
        "min(N // 2, j, M - j)",
        "test_dichotomies.py",
        "neighbourly or add_up_to_cover",
    ),
    ("dichotomies.py", "for i in range(N + 1))", "for i in range(N))", "test_dichotomies.py", "cover"),
    ("radon.py", "if len(x) != x.shape[1] + 2:", "if len(x) != x.shape[1] + 3:", "test_radon.py", "lies_in_both_hulls"),
    # A caption, a swap or an order lost.
    ("scenes.py", "{first: attribute[second], second: attribute[first]}", "{}", "test_scenes.py", "swaps_exchange"),
    ("scenes.py", "tuple(sorted(words(caption)))", "words(caption)", "test_scenes.py", "multisets_forget"),
    (
        "encoders.py",
        "table[order(row)]",
        "table[order(row[:-2])]",
        "test_encoders.py",
        "order_blind or exact_zero or multiset_and_nothing",
    ),
    (
        "embeddings.py",
        "np.argsort(rows), axis=axis)",
        "rows, axis=axis)",
        "test_encoders.py",
        "order_and_the_repetition or in_their_order",
    ),
    ("encoders.py", " * int(positions)", "", "test_encoders.py", "without_positions"),
    ("encoders.py", "if found != digest:", "if not found:", "test_encoders.py", "only_the_named_weights"),
    # The codes of the middle chapters.
    (
        "codes.py",
        "return 2 * leak.interaction / pooled_square",
        "return leak.interaction / pooled_square",
        "test_codes.py",
        "walsh_codes_sit",
    ),
    ("codes.py", "5 - 10 / k + 8 / k**2", "5 - 10 / k + 7 / k**2", "test_codes.py", "spread_and_bias"),
    ("codes.py", "(M - 1) * (K - 1) + k - 1))", "(M - 1) * (K - 1) + k))", "test_codes.py", "two_simplices"),
    ("depth.py", "return Fraction(2, b**D)", "return Fraction(2, b ** (D + 1))", "test_depth.py", "limit"),
    (
        "depth.py",
        "5 - Fraction(10, b) + Fraction(8, b**2)",
        "5 - Fraction(10, b) + Fraction(8, b)",
        "test_depth.py",
        "corrections",
    ),
    ("depth.py", "return 25 * b ** (2 * D)", "return 25 * b ** (2 * D) + 1", "test_depth.py", "exact_powers"),
    ("gauge.py", "return linear(image**2, T**2)", "return linear(image, T)", "test_gauge.py", "without_an_answer"),
    (
        "gauge.py",
        "image, template(u, swapped(v)))",
        "image, template(u, v))",
        "test_gauge.py",
        "changes_sign_with_the_caption or plain_matcher",
    ),
    ("frontier.py", "inside * (2 - inside)", "inside * (2 - inside / 2)", "test_frontier.py", "known_factor"),
    (
        "frontier.py",
        "np.sqrt(x * (2 - y)) + np.sqrt(y * (2 - x))",
        "np.sqrt(x * (2 - x)) + np.sqrt(y * (2 - y))",
        "test_frontier.py",
        "pass_the_caps",
    ),
    ("throttle.py", "self.c0 + rate * self.cost", "self.c0 + self.cost", "test_throttle.py", ""),
    (
        "throttle.py",
        "torch.logaddexp(torch.zeros_like(m), -m)",
        "torch.logaddexp(torch.zeros_like(m), m)",
        "test_throttle.py",
        "",
    ),
    # Splits, floors and scores of the emergence chapter.
    ("coverage_split.py", "free[anchors] = False", "free[anchors] = True", "test_emergence.py", "split_shows_every_value"),
    ("coverage_split.py", "return scene - last + last.flip(-1)", "return scene", "test_emergence.py", "swap_exchanges_last"),
    ("coverage_split.py", "apart / 6 if ties", "apart / 4 if ties", "test_emergence.py", "bag_floor_by_counting"),
    ("emergence.py", "near[torch.isin(near, part.seen)]", "near", "test_emergence.py", "never_meets"),
    ("emergence.py", "(margin == 0).double() / 2", "(margin == 0).double()", "test_emergence.py", "counts_a_tie or exactly_half"),
    (
        "emergence.py",
        "return 2 * leak.interaction / float(",
        "return leak.interaction / float(",
        "test_emergence.py",
        "pooled_margin_is",
    ),
    ("emergence.py", "draw_scenes(part.seen, PROBED", "draw_scenes(part.held, PROBED", "test_emergence.py", "probes_see"),
    ("emergence.py", "flatten(1), part.held_table())", "flatten(1), ~part.held_table())", "test_emergence.py", "probes_see"),
    ("emergence.py", "other, other.flip(1))", "other.flip(1), other)", "test_emergence.py", "named_by_what"),
    ("coverage_split.py", "multinomial(count.double()", "multinomial((count > 0).double()", "test_emergence.py", "drawn_evenly"),
    # Pictures, the small transformer and what is read from it.
    (
        "colourshape.py",
        "objects[:, slot].clamp(min=0) % world.shapes",
        "objects[:, slot].clamp(min=0) // world.shapes",
        "test_colourshape.py",
        "shows_its_objects",
    ),
    (
        "colourshape.py",
        ".transpose(2, 3).reshape(n, side * side",
        ".reshape(n, side * side",
        "test_colourshape.py",
        "patches_count",
    ),
    ("pooling.py", "(1 - share) ** 2 / (T - 1)", "(1 - share) ** 2", "test_pooling.py", "root_of_t or simulation"),
    ("vit.py", "buckets(codes) < TRAINED", "buckets(codes) >= 0", "test_vision.py", "never_tested_on"),
    ("vit.py", "(last[:, 0], last[:, 1:].mean(1)", "(last[:, 1], last[:, 1:].mean(1)", "test_vision.py", "encodings_are"),
    ("vision.py", "(asked * on).sum(-1)", "asked.sum(-1)", "test_vision.py", "landing_by_hand"),
    ("vision.py", "looked = z[parts[2]", "looked = z[parts[0]", "test_vision.py", "those_of_test_rows"),
    (
        "vision.py",
        "torch.randperm(len(codes), generator=draws)",
        "torch.arange(len(codes))",
        "test_vision.py",
        "what_they_are_called",
    ),
    ("vit.py", "cross_entropy(logits.T, own)", "cross_entropy(logits, own)", "test_vision.py", "asks_both_ways"),
    ("vit.py", "generator(config.seed + 1_000_003)", "generator(1_000_003)", "test_vision.py", "scenes_of_its_own"),
    ("activations.py", "seed * 1_000_003 + start", "seed * 1_000_003", "test_vision.py", "goes_on_where"),
    ("pooling.py", "others, k - 1 - n", "others, k - n", "test_pooling.py", "knows_one_feature"),
    ("activations.py", "last[:, skipped:]", "last[:, 1:]", "test_vision.py", "tokens_of_timm"),
    # A check that lets everything pass.
    (
        "claims.py",
        "return abs(got - want) <= entry.tolerance",
        "return got - want <= entry.tolerance",
        "test_claims.py",
        "within_the_tolerance",
    ),
    (
        "claims.py",
        "if not got or len(got) != len(want) or not all(",
        "if not got or not any(",
        "test_claims.py",
        "entry_by_entry or fractions",
    ),
    # Exact priors, channels and counts.
    ("information.py", "amax(dim=-2) for g", "amin(dim=-2) for g", "test_information.py", "object_by_object"),
    ("information.py", "[..., :-1] + tables[0][..., 1:]", "[..., 1:] + tables[0][..., 1:]", "test_information.py", "list_of_all"),
    ("information.py", "= below[1:]", "= below[:-1]", "test_information.py", "product_of_the_conditionals"),
    ("information.py", "= 2 * prefix + rows[:, k]", "= prefix + rows[:, k]", "test_information.py", "list_of_all"),
    ("channels.py", "apart=conditional_information(p.transpose(1, 2, 0))", "apart=0.0", "test_channels.py", "fails_by_exactly"),
    ("channels.py", "- (x**2).sum(axis=1) / 2", "- (x**2).sum(axis=1)", "test_channels.py", "sampled_information"),
    ("channels.py", "(m + other, 2 * noise * d,", "(m + other, noise * d,", "test_channels.py", "bracket"),
    ("channels.py", "(2 * noise**2 * log(2))", "(noise**2 * log(2))", "test_channels.py", "ceiling_is_the_spread"),
    ("channels.py", "erfc(margin / (noise", "erfc(abs(margin) / (noise", "test_channels.py", "deployed_rule"),
    (
        "plots/information.py",
        "return 1 - float(np.mean(list(errors)))",
        "return float(np.mean(list(errors)))",
        "test_information_pictures.py",
        "mirrored",
    ),
    ("tables.py", "ways * comb(levels[level], here)", "ways", "test_tables.py", "counted_as"),
    ("widgets.py", '(stack, "selected_index"))', '(stack, "layout"))', "test_pictures.py", "drive_every_stack"),
    ("plots/__init__.py", "if not alt.strip():", "if alt is None:", "test_pictures.py", "is_required"),
    # Scenes as sums of objects.
    (
        "structure.py",
        "return 1 - float((rows - guess).square().sum()) / total",
        "return 1 - float((rows - guess).square().sum()) / total / 2",
        "test_structure.py",
        "full_grid",
    ),
    ("structure.py", "Leakage(P - none / 2,", "Leakage(P - none,", "test_structure.py", "leakage_predicts"),
    ("structure.py", "+ ridge * (1 - old)", "- ridge * (1 - old)", "test_structure.py", "pays_for_leaving_one"),
    (
        "scene_bank.py",
        "self.slots[:, [0, 3, 2, 1]]",
        "self.slots[:, [2, 3, 0, 1]]",
        "test_binding_functions.py",
        "holds_each_scene",
    ),
    ("scene_bank.py", ".sum()) / 4 / total", ".sum()) / 2 / total", "test_binding_functions.py", "interaction_of_its_codes"),
    ("binding_functions.py", "lowest > scores", "lowest >= scores", "test_binding_functions.py", "is_strict"),
    (
        "binding_functions.py",
        "Readers.of(bank, x, rest)",
        "Readers.of(bank, x, rest | ~rest)",
        "test_binding_functions.py",
        "no_reader",
    ),
    (
        "binding_functions.py",
        "objects.predict(bank.objects), test & test[bank.swap])",
        "objects.predict(bank.objects), test)",
        "test_binding_functions.py",
        "neither_scene_nor_swap",
    ),
    # Probes.
    (
        "probe_heads.py",
        "torch.ones(K, K, dtype=like.dtype, device=like.device), 1)",
        "torch.ones(K, K, dtype=like.dtype, device=like.device), 0)",
        "test_probes.py",
        "no_conditional_sees and linear",
    ),
    ("probe_heads.py", "product.sum(-1), alpha=scale)", "product.sum(-1))", "test_probes.py", "those_of_a_loop and quadratic"),
    ("probes.py", 'self.draws.set_state(tensors["generator"])', "pass", "test_probes.py", "killed_fit and quadratic"),
    (
        "probes.py",
        "(1 - math.cos(math.pi * share / 0.15)) / 2)",
        "(1 + math.cos(math.pi * share / 0.15)) / 2)",
        "test_probes.py",
        "learning_rate_rises",
    ),
    ("probe_data.py", " + gap**2 * (total * here / (total + here))", "", "test_probes.py", "moments_of_pieces"),
    ("probes.py", "self.parts[1]).mean())", "self.parts[2]).mean())", "test_probes.py", "validation_rows_choose"),
    ("probes.py", "*data.moments(parts[0])", "*data.moments(np.arange(len(data.o)))", "test_probes.py", "validation_rows_choose"),
    ("probe_data.py", "for x in (self.anchor, self.condition) if", "for x in () if", "test_probes.py", "checkpoint_belongs"),
    ("probe_data.py", "known = np.concatenate(parts[:2])", "known = parts[0]", "test_probes.py", "held_out_of_a_small"),
    (
        "calibration.py",
        "torch.special.xlogy(K - wrong, 1 - flips)",
        "torch.special.xlogy(K, 1 - flips)",
        "test_calibration.py",
        "flips_against",
    ),
]


@pytest.fixture(scope="module")
def copy(tmp_path_factory):
    """The package and its tests, where a fault can be planted."""
    folder = tmp_path_factory.mktemp("planted")
    for name in ("binding", "tests"):
        shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
    (folder / "pyproject.toml").write_text("[tool.pytest.ini_options]\n")
    return folder


def run(folder, test, names):
    environment = os.environ | {
        "OMP_NUM_THREADS": "1",
        "PYTHONDONTWRITEBYTECODE": "1",
        "HYPOTHESIS_STORAGE_DIRECTORY": str(folder / ".examples"),
    }
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-x",
        "-q",
        "-p",
        "no:cacheprovider",
        "-p",
        "no:xdist",
        "--assert=plain",  # under CI pytest explains a difference in full, which takes hours for lists of thousands
        f"tests/{test}",
        "-k",
        names,
    ]
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=300)


@pytest.mark.parametrize(
    ("file", "sound", "faulty", "test", "names"), FAULTS, ids=[f"{number}-{fault[0]}" for number, fault in enumerate(FAULTS)]
)
def test_a_planted_fault_turns_a_test_red(copy, file, sound, faulty, test, names):
    path = copy / "binding" / file
    text = path.read_text(encoding="utf-8")
    assert text.count(sound) == 1, f"{file} has {text.count(sound)} places like {sound!r}: name the fault anew"
    path.write_text(text.replace(sound, faulty), encoding="utf-8")
    try:
        done = run(copy, test, names)
    finally:
        path.write_text(text, encoding="utf-8")
    # 1: a test failed. Anything else (no such test, a broken import of pytest itself) proves nothing.
    assert done.returncode == 1, f"no test of {test} ({names}) noticed:\n{done.stdout[-2000:]}{done.stderr[-2000:]}"
