"""``binding``: the encoder of the book, the audit of any encoder, and counts on captions and SugarCrepe, on the command line."""

import argparse
import json
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np

from binding import __version__

TABLE = 20
"""Most captions whose distances are printed as a table."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; 0 if it did what was asked, 2 with one line on stderr if the input was bad."""
    arguments = _parser().parse_args(argv)
    try:
        return arguments.run(arguments)
    except (ValueError, OSError) as error:
        print(f"binding: {error}", file=sys.stderr)
        return 2


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="binding", description="The helper package of 'The Limits of Binding in Dual Encoders'."
    )
    parser.add_argument("--version", action="version", version=f"binding {__version__}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    encode = commands.add_parser(
        "encode",
        help="embed captions offline and print how far apart they are",
        description="Embeds captions with all-MiniLM-L6-v2 and prints how far apart they are, from 0 (equal) to 2 (opposite).",
    )
    encode.set_defaults(run=_encode)
    encode.add_argument("captions", nargs="*", metavar="CAPTION")
    encode.add_argument("--file", type=Path, help="a UTF-8 text file with one caption a line; blank lines are skipped")
    encode.add_argument("--out", type=Path, help="write captions and embeddings to this .npz file")
    encode.add_argument("--force", action="store_true", help="let --out replace a file")
    encode.add_argument("--json", action="store_true", help="print captions and distances as JSON")
    _contrast_rate_parser(commands)
    _sugarcrepe_parser(commands)
    _audit_parser(commands)
    _probe_parser(commands)
    _decompose_parser(commands)
    return parser


def _decompose_parser(commands: Any) -> None:
    parser = commands.add_parser(
        "decompose",
        help="measure how far scene embeddings are sums of objects, and how much of the pairing they carry",
        description="Embeds 3,136 captions of two objects and prints how well sums of object and concept vectors fit, what edits"
        " of them retrieve; with --coverage also what small models predict of scenes of objects not shown. MODEL is what"
        " 'binding audit' takes; an .npz file may hold the embeddings of pictures under the captions that --captions writes.",
    )
    parser.set_defaults(run=_decompose)
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("model", nargs="?", metavar="MODEL", help="the encoder")
    what.add_argument("--captions", type=Path, metavar="FILE", help="only write the captions, one a line (.txt)")
    parser.add_argument("--coverage", type=float, help="share of the 64 objects that small models are fitted on, for example 0.7")
    parser.add_argument("--seed", type=int, default=0, help="of the split (default 0)")
    parser.add_argument("--any-order", action="store_true", help="count both orders of a scene as right: for pictures")
    parser.add_argument("--json", action="store_true", help="print the results as JSON")
    parser.add_argument("--force", action="store_true", help="let --captions replace a file")


def _audit_parser(commands: Any) -> None:
    parser = commands.add_parser(
        "audit",
        help="measure how far a text encoder can bind, from captions alone",
        description="Measures how far captions move when two words are swapped, when the same scene is told in another order, and"
        " how much of the cap that uses. MODEL is minilm (the packaged encoder), open_clip:NAME/TAG,"
        " open_clip:NAME/FILE.safetensors, a folder that open_clip or sentence-transformers saved, python:MODULE:FUNCTION, or an"
        " .npz file with the arrays captions and embeddings.",
    )
    parser.set_defaults(run=_audit)
    parser.add_argument("model", nargs="?", default="minilm", metavar="MODEL", help="the encoder (default: minilm)")
    parser.add_argument("--family", action="append", metavar="NAME", help="only this family of quartets; may be repeated")
    parser.add_argument("--quartets", type=int, default=240, metavar="N", help="quartets a family (default: 240)")
    parser.add_argument("--seed", type=int, default=0, help="of the draw of quartets and of the bootstrap (default: 0)")
    parser.add_argument("--json", action="store_true", help="print the report as JSON")
    parser.add_argument("--out", type=Path, metavar="JSON", help="write the report to this .json file")
    parser.add_argument("--picture", type=Path, metavar="SVG", help="draw where the encoder stands into this .svg file")
    parser.add_argument("--force", action="store_true", help="let --out, --picture and --captions replace a file")
    parser.add_argument("--cache", type=Path, metavar="FOLDER", help="keep embeddings here, by content (default: nowhere)")
    parser.add_argument("--captions", type=Path, metavar="TXT", help="write the captions to embed elsewhere, and stop")
    parser.add_argument("--zoo", type=Path, metavar="FOLDER", help="audit a list of encoders; reports are kept in this folder")
    parser.add_argument("--list", type=Path, metavar="TOML", help="the list for --zoo (default: eighteen deployed encoders)")
    parser.add_argument("--jobs", type=int, default=1, metavar="J", help="processes for --zoo (default: 1)")
    parser.add_argument("--dask", metavar="ADDRESS", help="run --zoo on the Dask cluster of this scheduler")


def _contrast_rate_parser(commands: Any) -> None:
    parser = commands.add_parser(
        "contrast-rate",
        help="count how often a caption corpus sets a caption against its own swap",
        description="Counts, exactly, the pairs of captions with the same words in another order, and says what they can be worth"
        " to a contrastive loss. Reads .parquet, .csv, .tsv, .jsonl, .ndjson and .txt (a caption a line).",
    )
    parser.set_defaults(run=_contrast_rate)
    parser.add_argument("files", nargs="+", metavar="FILE", help="files of captions, or patterns such as 'captions/*.parquet'")
    parser.add_argument("--column", default="caption", help="the column of the captions (default: caption)")
    parser.add_argument("--batch", type=int, nargs="+", default=[256, 4096, 32768], metavar="B", help="batch sizes")
    parser.add_argument("--examples", type=int, default=5, metavar="N", help="list the N largest groups (default: 5)")
    parser.add_argument("--json", action="store_true", help="print the report as JSON")
    parser.add_argument("--figure", type=Path, metavar="SVG", help="draw the bound against the batch size into this .svg file")
    parser.add_argument("--force", action="store_true", help="let --figure replace a file")
    parser.add_argument("--work", type=Path, metavar="FOLDER", help="keep marks here: a killed run goes on from them")
    parser.add_argument("--memory", type=float, metavar="MB", help="bound of the engine's memory (default: 1,024)")
    parser.add_argument("--threads", type=int, help="threads of the engine (default: all; on a cluster 1)")
    parser.add_argument("--dask", metavar="ADDRESS", help="run on the Dask cluster of this scheduler; needs --work")
    parser.add_argument("--parts", type=int, default=1, metavar="P", help="divide the grouping into P tasks (default: 1)")


def _sugarcrepe_parser(commands: Any) -> None:
    parser = commands.add_parser(
        "sugarcrepe",
        help="measure every SugarCrepe item of an encoder: its ceiling and, with images, the margin below it",
        description="Measures, for every SugarCrepe item, the ceiling d: the most that any image can score the caption above its"
        " negative. With --images also the margin of the image itself; without, the other captions of the image stand in for it.",
    )
    parser.set_defaults(run=_sugarcrepe)
    parser.add_argument(
        "model", nargs="?", default="minilm", metavar="MODEL", help="minilm (default), open_clip:NAME/TAG, a folder, …"
    )
    parser.add_argument("--data", type=Path, metavar="DIR", help="the published JSON files (default: BINDING_SUGARCREPE)")
    parser.add_argument("--download", action="store_true", help="fetch them into --data first, each with its hash checked")
    parser.add_argument("--images", type=Path, metavar="DIR", help="COCO's val2017 images; needs an open_clip MODEL")
    parser.add_argument("--out", type=Path, metavar="JSON", help="write ceiling and margin of every item to this .json file")
    parser.add_argument("--force", action="store_true", help="let --out replace a file")


def _probe_parser(commands: Any) -> None:
    parser = commands.add_parser(
        "probe",
        help="measure how many bits about the objects of a scene stand in activations",
        description="Trains probes on activations and prints, in bits, what they read of a scene's objects, its features, and the"
        " binding that the features leave open. The .npz file holds Z (n, D) or tokens (n, T, D), the codes O (n, K), 0 or"
        " 1 for every conjunction of the grid with the last group fastest, and, if you like, the features F: numpy.savez("
        "'Z.npz', Z=Z, O=O). Intervals take the test rows as independent; BINDING_MEMORY_MB and BINDING_DEVICE set memory and"
        " device.",
    )
    parser.set_defaults(run=_probe)
    parser.add_argument("file", type=Path, metavar="NPZ", help="arrays Z (or tokens, for --probe attention), O, and perhaps F")
    parser.add_argument(
        "--prior",
        required=True,
        metavar="LAW",
        help="of the codes: subsets:8x8:18, balanced:8x8:6x6:18, upto:7x7:16, or enumerated:8x8, which takes the codes of the"
        " file for all there are and needs --draws",
    )
    parser.add_argument("--probe", default="quadratic", metavar="FAMILY", help="linear, shared, quadratic, deep, made, attention")
    parser.add_argument("--z", type=Path, nargs="+", metavar="SHARD", help="read Z from these .npy or .safetensors files instead")
    parser.add_argument("--draws", action="store_true", help="rows are independent draws: test codes may stand in training")
    parser.add_argument("--seed", type=int, default=0, help="of split, weights, order and bootstrap (default: 0)")
    parser.add_argument("--work", type=Path, metavar="FOLDER", help="keep checkpoints here: a killed run goes on from them")
    parser.add_argument("--json", action="store_true", help="print the report as JSON")
    parser.add_argument("--out", type=Path, metavar="JSON", help="write the report to this .json file")
    parser.add_argument("--force", action="store_true", help="let --out replace a file")


def _encode(arguments: argparse.Namespace) -> int:
    captions = [*arguments.captions, *_lines(arguments.file)]
    if not captions:
        raise ValueError("no caption given; name one or more, or a file with --file")
    if arguments.out is not None:
        _check_out(arguments.out, arguments.force)
    from binding.encoders import SHA256, distances, minilm, save_npz

    x = minilm()(captions)
    if arguments.out is not None:
        save_npz(arguments.out, captions=np.array(captions), embeddings=x, weights_sha256=np.array(SHA256))
    if arguments.json:
        between = np.round(distances(x), 6).tolist()
        print(json.dumps({"weights_sha256": SHA256, "captions": captions, "distances": between}, ensure_ascii=False))
    elif len(captions) <= TABLE:
        print(_table(captions, distances(x)))
    else:
        print(f"{len(captions)} captions encoded; more than {TABLE} make no table, use --json or --out")
    return 0


def _contrast_rate(arguments: argparse.Namespace) -> int:
    if any(size < 2 for size in arguments.batch):
        raise ValueError(f"--batch {min(arguments.batch)}: a contrast needs a batch of 2 at least")
    if arguments.figure is not None:
        _check_out(arguments.figure, arguments.force, option="--figure", ending=".svg")
    from binding.corpus import measure, table

    report = measure(
        arguments.files,
        column=arguments.column,
        work=arguments.work,
        memory=None if arguments.memory is None else int(arguments.memory * 1_000_000),
        threads=arguments.threads,
        dask=arguments.dask,
        parts=arguments.parts,
        examples=arguments.examples,
        progress=sys.stderr.isatty(),
    )
    if arguments.figure is not None:
        from binding.files import write_text
        from binding.plots import figure, svg
        from binding.plots.corpus import worth

        fig, ax = figure()
        worth(ax, {"swaps": report})
        write_text(arguments.figure, svg(fig))
    print(json.dumps(report.to_json(arguments.batch), ensure_ascii=False) if arguments.json else table(report, arguments.batch))
    return 0


def _sugarcrepe(arguments: argparse.Namespace) -> int:
    from binding import models, sugarcrepe
    from binding.dual import both_towers
    from binding.numerics import device

    folder = arguments.data or sugarcrepe.data_folder()
    if folder is None:
        raise ValueError("no data; name the folder of the SugarCrepe files with --data, or fetch them with --data DIR --download")
    if arguments.out is not None:
        _check_out(arguments.out, arguments.force, ending=".json")
    if arguments.download:
        sugarcrepe.download(folder)
    items = sugarcrepe.load(folder)
    start = time.perf_counter()
    if arguments.images is None:
        text, image = models.load(arguments.model, progress=sys.stderr.isatty()), None
    else:
        text, image = both_towers(arguments.model)
    run = sugarcrepe.measure(items, text, image, arguments.images or Path(), model=arguments.model)
    run.provenance.update(weights=getattr(text, "digest", "unknown"), binding=__version__, device=str(device()))
    run.provenance.update(seconds=round(time.perf_counter() - start, 1))
    if arguments.out is not None:
        run.save(arguments.out)
    print(_strata(run))
    return 0


def _strata(run: Any) -> str:
    """A table with one row a subset: exact counts, ceilings, and what a scorer blind to word order could reach."""
    from binding.sugarcrepe import bag_of_words_ceiling, tally

    head = f"{'subset':12}{'items':>7}{'mean d':>8}{'pure':>7}{'bag':>8}{'with image':>12}{'right':>7}{'ties':>6}{'accuracy':>10}"
    rows = []
    for name in dict.fromkeys(run.subset.tolist()):
        here = run.of(name)
        d, pure, margins = run.d[here], run.pure[here], run.margin[here & ~np.isnan(run.margin)]
        counted = tally(margins) if len(margins) else None
        seen = f"{counted.n:12}{counted.right:7}{counted.ties:6}{float(counted.accuracy):10.2%}" if counted else f"{0:12}"
        bag = float(bag_of_words_ceiling(pure))
        rows.append(f"{name:12}{len(d):7}{d.mean():8.4f}{int(pure.sum()):7}{bag:8.1%}{seen}")
    return "\n".join([head, *rows, f"Image: {run.provenance['image']}. A tie counts one half."])


def _audit(arguments: argparse.Namespace) -> int:
    for option, ending in (("out", ".json"), ("picture", ".svg"), ("captions", ".txt")):
        path = getattr(arguments, option)
        if path is not None:
            _check_out(path, arguments.force, option=f"--{option}", ending=ending)
    from binding.audit import audit, captions_of, draw, table
    from binding.files import write_text

    settings = {"chosen": arguments.family, "n": arguments.quartets, "seed": arguments.seed}
    drawn = draw(**settings)  # refuses bad settings before a model is loaded
    if arguments.captions is not None:
        captions = captions_of(drawn)
        write_text(arguments.captions, "\n".join(captions))
        print(f"{len(captions)} captions written; embed them and keep both as an .npz file with captions and embeddings")
        return 0
    if arguments.zoo is not None:
        return _zoo(arguments, settings)
    from binding.models import load

    report = audit(load(arguments.model, arguments.cache, progress=sys.stderr.isatty()), arguments.model, **settings)
    text = json.dumps(report.to_json(), ensure_ascii=False)
    if arguments.out is not None:
        write_text(arguments.out, text)
    if arguments.picture is not None:
        from binding.plots import figure, svg
        from binding.plots.audit import position

        fig, ax = figure(5.4, 4)
        position(ax, report)
        write_text(arguments.picture, svg(fig))
    print(text if arguments.json else table(report))
    return 0


def _decompose(arguments: argparse.Namespace) -> int:
    """The decomposition of one encoder, and the predictions of small models if a coverage is given."""
    from binding.scene_bank import Bank, draw_split

    bank = Bank(8, 8)
    if arguments.captions is not None:
        _check_out(arguments.captions, arguments.force, option="--captions", ending=".txt")
        from binding.files import write_text

        write_text(arguments.captions, "\n".join(bank.captions()))
        print(f"{len(bank.slots)} captions written; embed them and keep both as an .npz file with captions and embeddings")
        return 0
    from binding.binding_functions import complexity, decomposition, report, tested
    from binding.models import load
    from binding.numerics import generator

    draws = generator(arguments.seed)  # bad values are refused before a model is loaded
    shown = None if arguments.coverage is None else draw_split(bank, arguments.coverage, draws)
    x = bank.embeddings(load(arguments.model, progress=sys.stderr.isatty())(bank.captions()))
    found: dict[str, Any] = {"decomposition": decomposition(bank, x, arguments.seed, ordered=not arguments.any_order)}
    if shown is not None:
        found["tested"] = tested(bank, shown)
        found["predicted"] = complexity(bank, x, arguments.coverage, arguments.seed)
    if arguments.json:
        print(json.dumps({"model": arguments.model, **found}, ensure_ascii=False))
        return 0
    print(report(found))
    return 0


def _zoo(arguments: argparse.Namespace, settings: dict[str, Any]) -> int:
    """One line an encoder, measured or not; 1 if any failed."""
    from functools import partial

    from binding.audit import line_of, run_zoo, zoo
    from binding.models import load

    loader = partial(load, cache=arguments.cache)
    outcomes = run_zoo(zoo(arguments.list), loader, arguments.zoo, jobs=arguments.jobs, dask=arguments.dask, **settings)
    print("\n".join(line_of(outcome) for outcome in outcomes))
    failed = sum(outcome.status == "failed" for outcome in outcomes)
    print(f"{len(outcomes) - failed} of {len(outcomes)} encoders measured; the reports are in {arguments.zoo}")
    return int(failed > 0)


def _probe(arguments: argparse.Namespace) -> int:
    if arguments.out is not None:
        _check_out(arguments.out, arguments.force, ending=".json")
    from binding.files import write_text
    from binding.probes import binding_information

    arrays = _arrays(arguments.file)
    key = "tokens" if arguments.probe == "attention" else "Z"
    for name in ("O",) if arguments.z else (key, "O"):
        if name not in arrays:
            raise ValueError(f"{arguments.file} has no array {name}; it has {', '.join(arrays) or 'none'}")
    o = arrays["O"]
    law = _law(arguments.prior, o, arguments.draws)
    found = binding_information(
        arguments.z or arrays[key],
        o,
        arrays.get("F"),
        prior=law,
        probe=arguments.probe,
        disjoint=not arguments.draws,
        seed=arguments.seed,
        folder=arguments.work,
        progress=sys.stderr.isatty(),
    )
    text = json.dumps(found.to_json(), ensure_ascii=False)
    if arguments.out is not None:
        write_text(arguments.out, text)
    print(text if arguments.json else _readings(found))
    return 0


def _arrays(path: Path) -> dict[str, np.ndarray]:
    try:
        with np.load(path, allow_pickle=False) as stored:
            return {name: stored[name] for name in stored.files}
    except (OSError, EOFError, ValueError, TypeError, AttributeError, BadZipFile) as error:
        raise ValueError(f"{path} is no .npz file of arrays ({error})") from None


def _law(text: str, o: np.ndarray, draws: bool) -> Any:
    """The prior that ``--prior`` names."""
    from binding.information import Balanced, Enumerated, Subsets, UpTo

    kind, *rest = text.split(":")
    try:
        sides = [tuple(int(side) for side in part.split("x")) for part in rest]
        if kind == "subsets" and len(sides) == 2:
            return Subsets(sides[0], *sides[1])
        if kind == "upto" and len(sides) == 2:
            return UpTo(sides[0], *sides[1])
        if kind == "balanced" and len(sides) == 3:
            return Balanced(sides[0], sides[1], *sides[2])
    except (ValueError, TypeError) as error:
        raise ValueError(f"--prior {text}: {error}") from None
    if kind != "enumerated" or len(sides) != 1:
        raise ValueError(f"--prior {text} is no law; give for example subsets:8x8:18 or enumerated:8x8")
    if not draws:
        raise ValueError(
            f"--prior {text} takes its codes from the file, those of the test rows too; say --draws if that is right"
        )
    import torch

    codes, counts = np.unique(o, axis=0, return_counts=True)
    return Enumerated(torch.from_numpy(codes), sides[0], counts / counts.sum())


def _readings(found: Any) -> str:
    """A table of what a probe read, with intervals, and what is wrong with it."""
    share = f"{found.beta_star_difference.value:.1%}, no bound"
    rows: list[tuple[str, Any, float, str]] = [
        ("objects   I(O; Z) ≥", found.objects, found.entropy, f"β ≥ {found.beta.value:.1%}"),
        ("features  I(F; Z) ≥", found.features, found.entropy_features, ""),
        ("binding   B* ≥", found.binding_direct, found.entropy_given_features, f"β* ≥ {found.beta_star.value:.1%}"),
        ("  as the difference", found.binding_difference, found.entropy_given_features, share),
        ("control: rows dealt anew", found.null, 0.0, "should be 0"),
        ("control: z = F", found.from_features, found.entropy_features, "should be all"),
    ]
    lines = [f"{'':26}{'bits':>7}  {'95 % interval':>16}{'of':>8}"]
    lines += [f"{name:26}{e.value:7.2f}  [{e.low:6.2f}, {e.high:6.2f}]{of:8.2f}  {note}".rstrip() for name, e, of, note in rows]
    tested = f"{found.probe.family} probe, {found.n_test} test rows"
    return "\n".join([*lines, tested, *(f"Mind: {flag}." for flag in found.flags)])


def _lines(path: Path | None) -> list[str]:
    if path is None:
        return []
    try:
        return [line.strip() for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]
    except UnicodeDecodeError as error:
        raise ValueError(f"{path} is not UTF-8 text ({error.reason} at byte {error.start}); save it as UTF-8") from None


def _check_out(path: Path, force: bool, *, option: str = "--out", ending: str = ".npz") -> None:
    if path.suffix != ending:
        raise ValueError(f"{option} {path} does not end in {ending}; that is the kind of file it writes")
    if path.is_dir():
        raise ValueError(f"{option} {path} is a folder; name a file in it")
    if path.exists() and not force:
        raise ValueError(f"{path} exists; choose another name, or replace it with --force")


def _table(captions: Sequence[str], between: np.ndarray) -> str:
    head = [f"{index:>3}  {caption}" for index, caption in enumerate(captions, 1)]
    columns = "     " + "".join(f"{index:>7}" for index in range(1, len(captions) + 1))
    rows = [f"{index:>3}  " + "".join(f"{d:>7.3f}" for d in row) for index, row in enumerate(between, 1)]
    return "\n".join([*head, "", columns, *rows])
