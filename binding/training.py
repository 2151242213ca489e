"""A small CLIP trained in the chapter: open_clip's model and loss, scenes of two coloured shapes, captions of nine tokens.

The one thing that varies is π, the rate of batches in which every scene comes with its swap. Nothing else tells the encoder
that a pairing matters. One command runs the sweep and can be stopped and started again:

    python -m binding.training --scale laptop --out runs
"""

import argparse
import hashlib
import json
import math
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from importlib.metadata import version
from itertools import combinations
from pathlib import Path
from typing import Any

import torch
from torch.nn.functional import cross_entropy, normalize

from binding.colourshape import COLOURS, GROUND, SHAPES, masks
from binding.files import write_json
from binding.numerics import device, gaussian, generator
from binding.runs import provenance

WORDS = ("<pad>", "<start>", "a", "and", *COLOURS, *SHAPES, "<end>")
"""The vocabulary; a caption is embedded at its last token, which has the highest number, as CLIP expects."""
SIDE, CELL = 32, 13
PIXEL_NOISE = 0.05
RATES = (0.0, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0)
HELD_OUT = 0.2
SPLIT_SEED, SCORE_SEED = 20260816, 7
SCHEMA = 1


@dataclass(frozen=True)
class Config:
    """All that a run depends on.

    Raises ``ValueError`` for a rate outside [0, 1], an odd batch or one larger than the set of scenes, or a size below 1.
    """

    rate: float
    """π, the probability that a batch is a contrast batch."""
    seed: int = 0
    """Of the initial weights and of every draw."""
    steps: int = 600
    """Gradient steps."""
    warmup: int = 100
    """Steps over which the learning rate rises."""
    batch: int = 32
    """Images, and captions, a batch."""
    learning_rate: float = 1e-3
    """Largest learning rate of AdamW."""
    width: int = 64
    """Of both towers, and of the embedding."""
    image_layers: int = 2
    """Transformer blocks of the image tower."""
    text_layers: int = 2
    """Transformer blocks of the text tower."""
    scored: int = 2048
    """Images on which each score is measured."""

    def __post_init__(self) -> None:
        if not 0 <= self.rate <= 1:
            raise ValueError(f"rate = {self.rate} is no probability; give π between 0 and 1")
        if self.seed < 0:
            raise ValueError(f"seed = {self.seed} is negative; give 0 or more")
        if self.batch < 2 or self.batch % 2 or self.batch > len(split()[0]):
            raise ValueError(
                f"batch = {self.batch}; a contrast batch holds pairs: give an even number from 2 to {len(split()[0])}"
            )
        for name in ("steps", "warmup", "image_layers", "text_layers", "scored"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} = {getattr(self, name)}; give 1 or more")
        if self.width < 32 or self.width % 32:
            raise ValueError(f"width = {self.width}; attention heads are 32 wide, give a multiple of 32")
        if not self.learning_rate > 0:
            raise ValueError(f"learning_rate = {self.learning_rate}; give a positive number")

    @property
    def name(self) -> str:
        """A name that two different configurations do not share."""
        return "run-" + hashlib.sha256(json.dumps(asdict(self), sort_keys=True).encode()).hexdigest()[:16]


def configurations(scale: str = "laptop") -> list[Config]:
    """The runs of a sweep: ``laptop`` (three seeds, the default model) or ``full`` (ten seeds, wider and longer, for a GPU).

    All rates, and for comparison π = ½ with a text tower of one layer. Raises ``ValueError`` for another scale.
    """
    models = {"laptop": (3, Config(0.0)), "full": (10, Config(0.0, steps=2400, warmup=400, batch=128, width=128))}
    if scale in models:
        seeds, model = models[scale]
        settings = [replace(model, rate=rate) for rate in RATES] + [replace(model, rate=0.5, text_layers=1)]
        return [replace(setting, seed=seed) for seed in range(seeds) for setting in settings]
    raise ValueError(f"scale = {scale!r}; choose 'laptop' or 'full'")


def concept_sets() -> torch.Tensor:
    """All pairs of colours with all pairs of shapes, rows (colour, colour, shape, shape), each pair increasing, (784, 4)."""
    pairs = list(combinations(range(8), 2))
    return torch.tensor([(*colours, *shapes) for colours in pairs for shapes in pairs])


def split() -> tuple[torch.Tensor, torch.Tensor]:
    """The concept sets trained on and those held out, (628, 4) and (156, 4); a scene and its swap share a set."""
    sets = concept_sets()
    order = torch.randperm(len(sets), generator=generator(SPLIT_SEED))
    held = int(HELD_OUT * len(sets))
    return sets[order[held:]], sets[order[:held]]


def scenes(sets: torch.Tensor, crossed: torch.Tensor) -> torch.Tensor:
    """The scenes of concept sets, rows (colour, shape, colour, shape), (n, 4); ``crossed`` (n) exchanges the two colours.

    Not crossed, the lower colour goes with the lower shape: the *typical* pairing.

    >>> scenes(torch.tensor([[0, 1, 2, 3]] * 2), torch.tensor([False, True])).tolist()
    [[0, 2, 1, 3], [1, 2, 0, 3]]
    """
    first, second, shape, other = sets.T
    return torch.stack(
        [torch.where(crossed, second, first), shape, torch.where(crossed, first, second), other],
        dim=1,
    )


def swap(scene: torch.Tensor) -> torch.Tensor:
    """σs: the two colours exchanged, the shapes where they were, (*, 4) → (*, 4)."""
    return scene[..., [2, 1, 0, 3]]


def render(scene: torch.Tensor, draws: torch.Generator, noise: float = PIXEL_NOISE) -> torch.Tensor:
    """Pictures of scenes (n, 4): one object left, one right, in a random order, with Gaussian pixel noise, (n, 3, SIDE, SIDE).

    Colours are in units of full brightness; ``noise`` is the standard deviation of a pixel. Raises ``ValueError`` below 0.
    """
    if noise < 0:
        raise ValueError(f"noise = {noise} is negative; give a standard deviation")
    n, shapes = len(scene), masks(CELL)
    palette = torch.tensor(list(COLOURS.values()))
    first_side = torch.randint(0, 2, (n,), generator=draws)
    cells = torch.full((n, 2, 3, CELL, CELL), GROUND)
    for place in range(2):
        colour, shape = scene[:, 2 * place], scene[:, 2 * place + 1]
        shown = shapes[shape][:, None]
        cells[torch.arange(n), (first_side + place) % 2] = (1 - shown) * GROUND + shown * palette[colour][:, :, None, None]
    picture = torch.full((n, 3, SIDE, SIDE), GROUND)
    for side, left in enumerate((1, 18)):
        picture[:, :, 9 : 9 + CELL, left : left + CELL] = cells[:, side]
    return picture + noise * gaussian(picture.shape, draws, dtype=torch.float32)


def captions(scene: torch.Tensor, later: torch.Tensor) -> torch.Tensor:
    """Token numbers of "a colour shape and a colour shape", (n, 4) → (n, 9); ``later`` (n) names the second object first.

    >>> tokens = captions(torch.tensor([[0, 0, 2, 1]]), torch.tensor([True]))
    >>> " ".join(WORDS[token] for token in tokens[0])
    '<start> a blue square and a red disc <end>'
    """
    ordered = torch.where(later[:, None], scene[:, [2, 3, 0, 1]], scene)
    start, a, joined, end = (torch.full((len(scene), 1), WORDS.index(word)) for word in ("<start>", "a", "and", "<end>"))
    colours, shapes = ordered[:, ::2] + WORDS.index("red"), ordered[:, 1::2] + WORDS.index("disc")
    return torch.cat([start, a, colours[:, :1], shapes[:, :1], joined, a, colours[:, 1:], shapes[:, 1:], end], dim=1)


def quartet_captions(scene: torch.Tensor) -> list[torch.Tensor]:
    """The four captions of scenes (n, 4): c(s), its reorder, c(σs), its reorder, each (n, 9)."""
    orders = [torch.full((len(scene),), later) for later in (False, True)]
    return [captions(pairing, order) for pairing in (scene, swap(scene)) for order in orders]


def build(config: Config) -> Any:
    """open_clip's CLIP, freshly drawn from ``config.seed``; torch's own generator is left as it was."""
    from open_clip.model import CLIP

    width, heads = config.width, config.width // 32
    image = {"image_size": SIDE, "patch_size": 8, "layers": config.image_layers, "width": width, "head_width": 32}
    text = {"context_length": 9, "vocab_size": len(WORDS), "layers": config.text_layers, "width": width, "heads": heads}
    # open_clip draws weights from the global generator alone: it is seeded in a fork, and is then as it was.
    with torch.random.fork_rng():
        torch.manual_seed(config.seed)
        return CLIP(width, image, text).to(device())


def draw_scenes(config: Config, contrast: bool, draws: torch.Generator) -> tuple[torch.Tensor, torch.Tensor]:
    """The scenes of one batch, (B, 4), and a mask of those whose caption names the second object first, (B).

    In a contrast batch the second half are the swaps of the first half; else all concept sets differ, and the pairing is typical.
    """
    known, size = split()[0], config.batch
    chosen = known[torch.randperm(len(known), generator=draws)[: size // 2 if contrast else size]]
    scene = scenes(chosen, torch.zeros(len(chosen), dtype=torch.bool))
    later = torch.randint(0, 2, (size,), generator=draws) == 1
    return torch.cat([scene, swap(scene)]) if contrast else scene, later


def train(config: Config, progress: bool = False) -> Any:
    """A CLIP trained with open_clip's unmodified ``ClipLoss``, in which a swapped caption is one more negative of its batch."""
    from open_clip.loss import ClipLoss
    from tqdm.auto import tqdm

    model, loss, draws = build(config), ClipLoss(), generator(config.seed)
    weights = list(model.parameters())
    groups = [
        {"params": [w for w in weights if w.ndim > 1], "weight_decay": 0.1},
        {"params": [w for w in weights if w.ndim < 2], "weight_decay": 0.0},
    ]
    optimiser = torch.optim.AdamW(groups, lr=config.learning_rate, betas=(0.9, 0.98), eps=1e-6)
    for step in tqdm(range(config.steps), desc=f"π = {config.rate:g}, seed {config.seed}", disable=not progress, leave=False):
        contrast = bool(torch.rand((), generator=draws, dtype=torch.float64) < config.rate)
        scene, later = draw_scenes(config, contrast, draws)
        pictures, tokens = render(scene, draws).to(device()), captions(scene, later).to(device())
        for group in optimiser.param_groups:
            group["lr"] = learning_rate(config, step)
        optimiser.zero_grad()
        loss(*model(pictures, tokens)).backward()
        torch.nn.utils.clip_grad_norm_(weights, 1.0)
        optimiser.step()
        with torch.no_grad():
            model.logit_scale.clamp_(0, math.log(100))
    return model.eval()


def learning_rate(config: Config, step: int) -> float:
    """A linear rise over ``warmup`` steps times a cosine that falls from 1 to 1/20."""
    rise = min(1.0, (step + 1) / config.warmup)
    return config.learning_rate * rise * (0.525 + 0.475 * math.cos(math.pi * step / config.steps))


def embed(model: Any, pictures: torch.Tensor, *texts: torch.Tensor) -> list[torch.Tensor]:
    """Unit vectors of pictures and of as many sets of captions as given, in float64 on the CPU, each (n, N)."""
    with torch.no_grad():
        rows = [model.encode_image(pictures.to(device())), *(model.encode_text(t.to(device())) for t in texts)]
    return [normalize(row.double().cpu(), dim=-1) for row in rows]


def measure(model: Any, config: Config) -> dict[str, float]:
    """Every score of a run: recognition, swap accuracy without and with noise, margins, and the two losses, real and blind."""
    return {**held_out_scores(model, config), **batch_losses(model, config)}


def held_out_scores(model: Any, config: Config) -> dict[str, float]:
    """Scores on new pictures of concept sets that were never trained on, in both pairings; a tie counts one half."""
    draws, n = generator(SCORE_SEED), config.scored
    chosen = split()[1][torch.randint(0, len(split()[1]), (n,), generator=draws)]
    scene = scenes(chosen, torch.randint(0, 2, (n,), generator=draws) == 1)
    later = torch.randint(0, 2, (n,), generator=draws) == 1
    pictures = render(scene, draws)
    rivals = {"swap": swap(scene), **{what: replaced(scene, what, draws) for what in ("colour", "shape")}}
    image, right, *wrong = embed(model, pictures, captions(scene, later), *(captions(rival, later) for rival in rivals.values()))
    margins = {what: ((right - t) * image).sum(-1) for what, t in zip(rivals, wrong, strict=True)}
    scores = {f"{what}_accuracy": accuracy(margin) for what, margin in margins.items()}
    scores |= {f"{what}_margin": float(margin.mean()) for what, margin in margins.items()}
    scores["ceiling"] = float((right - wrong[0]).norm(dim=-1).mean())
    for noise in (0.2, 0.4):
        (noisy,) = embed(model, render(scene, draws, noise))
        scores[f"swap_accuracy_noise_{noise:g}"] = accuracy(((right - wrong[0]) * noisy).sum(-1))
        scores[f"shape_accuracy_noise_{noise:g}"] = accuracy(((right - wrong[2]) * noisy).sum(-1))
    return scores


def accuracy(margin: torch.Tensor) -> float:
    """The share of positive margins, where a zero counts one half."""
    return float(((margin > 0).double() + (margin == 0).double() / 2).mean())


def replaced(scene: torch.Tensor, what: str, draws: torch.Generator) -> torch.Tensor:
    """Scenes in which one object has another colour, or another shape, that the scene does not have yet."""
    column = 0 if what == "colour" else 1
    taken = scene[:, [column, column + 2]].sort(dim=1).values
    new = torch.randint(0, 6, (len(scene),), generator=draws)
    new = new + (new >= taken[:, 0])
    new = new + (new >= taken[:, 1])
    changed = scene.clone()
    changed[:, column] = new
    return changed


def batch_losses(model: Any, config: Config, batches: int = 32) -> dict[str, float]:
    """The loss that was optimised, on new batches of either kind, of the encoder and of its pairing-blind average."""
    draws, scale = generator(SCORE_SEED + 1), model.logit_scale.detach().exp().item()
    found: dict[str, list[float]] = {}
    for contrast in (True, False):
        kind = "contrast" if contrast else "plain"
        for _ in range(batches):
            scores = blocks(model, config, contrast, draws)
            found.setdefault(f"{kind}_loss", []).append(symmetric_loss(scale * scores[0, 0]))
            found.setdefault(f"{kind}_loss_blind", []).append(symmetric_loss(scale * scores.mean(dim=(0, 1))))
    return {name: sum(values) / len(values) for name, values in found.items()}


def blocks(model: Any, config: Config, contrast: bool, draws: torch.Generator) -> torch.Tensor:
    """Scores of the scenes of a batch and of their swaps, (2, 2, B, B): at [p, q], pictures (swapped if p), captions (if q)."""
    scene, later = draw_scenes(config, contrast, draws)
    image, text = embed(model, render(scene, draws), captions(scene, later))
    if contrast:
        other_image, other_text = (x.roll(config.batch // 2, 0) for x in (image, text))
    else:
        other_image, other_text = embed(model, render(swap(scene), draws), captions(swap(scene), later))
    return torch.stack([torch.stack([i @ t.T for t in (text, other_text)]) for i in (image, other_image)])


def symmetric_loss(logits: torch.Tensor) -> float:
    """CLIP's loss, ½ (images choose captions + captions choose images), in nats, of logits (B, B)."""
    own = torch.arange(len(logits))
    return float((cross_entropy(logits, own) + cross_entropy(logits.T, own)) / 2)


def run(config: Config, folder: Path, progress: bool = False) -> dict[str, Any]:
    """Train and measure, or read what an earlier call has stored under this configuration's name in ``folder``."""
    path = folder / f"{config.name}.json"
    if path.exists():
        return json.loads(path.read_text(encoding="utf-8"))
    start, processor = time.perf_counter(), time.process_time()
    scores = measure(train(config, progress), config)
    spent = {"seconds": round(time.perf_counter() - start, 1), "processor_seconds": round(time.process_time() - processor, 1)}
    found = {"config": asdict(config), "scores": scores, "provenance": made_with() | spent}
    write_json(path, found)
    return found


def sweep(configs: Sequence[Config], folder: Path, progress: bool = True) -> list[dict[str, Any]]:
    """All runs, each stored under its name as soon as it is done: a sweep that was stopped loses at most the run in flight."""
    from tqdm.auto import tqdm

    return [run(config, folder, progress) for config in tqdm(configs, desc="runs", disable=not progress)]


def made_with() -> dict[str, Any]:
    """What made a run, beside what :func:`binding.runs.provenance` says: open_clip, and the source of this module."""
    source = hashlib.sha256(Path(__file__).read_bytes()).hexdigest()[:16]
    return provenance() | {"open_clip": version("open_clip_torch"), "source": source}


def collected(scale: str, runs: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """One table of all runs of a sweep, with the command that makes it again."""
    command = f"python -m binding.training --scale {scale} --out runs"
    return {"schema": SCHEMA, "scale": scale, "command": command, "runs": list(runs)}


def load(path: Path) -> dict[str, Any]:
    """A stored sweep.

    Raises ``ValueError`` if the file is missing, of another schema, or has other runs than ``configurations`` of its scale.
    """
    if not path.exists():
        raise ValueError(
            f"no stored sweep at {path}; make it with: python -m binding.training --scale laptop --out {path.parent}"
        )
    stored = json.loads(path.read_text(encoding="utf-8"))
    if stored.get("schema") != SCHEMA:
        raise ValueError(f"{path} has schema {stored.get('schema')!r}, this code reads {SCHEMA}; run: {stored.get('command')}")
    if [row["config"] for row in stored["runs"]] != [asdict(config) for config in configurations(stored["scale"])]:
        raise ValueError(f"{path} holds other runs than the {stored['scale']} sweep; run: {stored['command']}")
    return stored


def by_rate(stored: dict[str, Any], score: str, text_layers: int = 2) -> dict[float, list[float]]:
    """One score of a stored sweep: for every rate π, its values over the seeds, of the runs with this many text layers.

    Raises ``ValueError`` for a score that was not stored.
    """
    known = stored["runs"][0]["scores"]
    if score not in known:
        raise ValueError(f"no score {score!r} in the sweep; it has {', '.join(known)}")
    found: dict[float, list[float]] = {}
    for row in stored["runs"]:
        if row["config"]["text_layers"] == text_layers:
            found.setdefault(row["config"]["rate"], []).append(row["scores"][score])
    return found


def main(arguments: Sequence[str] | None = None) -> None:
    """The command line: ``python -m binding.training --scale full --out runs``."""
    parser = argparse.ArgumentParser(prog="python -m binding.training", description="Train the encoders of the throttle chapter.")
    parser.add_argument("--scale", choices=("laptop", "full"), default="laptop")
    parser.add_argument("--out", type=Path, required=True, help="folder for the runs and for the table of all of them")
    chosen = parser.parse_args(arguments)
    runs = sweep(configurations(chosen.scale), chosen.out / f"throttle-{chosen.scale}")
    path = chosen.out / f"throttle-{chosen.scale}.json"
    write_json(path, collected(chosen.scale, runs))
    print(f"{len(runs)} runs in {path}")


if __name__ == "__main__":
    main()
