"""Compares two checkouts: runs the same programs of both in turn, and finds the figures that are slower."""

import dataclasses
import fnmatch
import pathlib
import statistics
import time

from .page import Bar, Intervals, Output, Page, Section, Table, Text, time_text
from .pairs import interval_of, more_pairs, verdict
from .processes import Command, Failure, run_once, under_mpirun


@dataclasses.dataclass(frozen=True)
class ShortRun:
    """A program that runs for a second or two, and the figures in its output that are our seconds."""

    name: str
    program: str
    arguments: tuple
    figures: tuple  # patterns of paths into its JSON
    ranks: int = 1


SMALL_GPT = ("--layers=2", "--heads=4", "--width=256", "--block=128")
GPT = (*SMALL_GPT, "--steps=9", "--no-floor")
RESNET = ("--batch=4", "--steps=7", "--no-floor")

SHORT_RUNS = (
    ShortRun("gpt step fp32", "gpt_step", GPT, ("step_seconds",), ranks=2),
    ShortRun("gpt step bf16", "gpt_step", (*GPT, "--precision=bf16"), ("step_seconds",), ranks=2),
    ShortRun("resnet step fp32", "resnet_step", RESNET, ("step_seconds",), ranks=2),
    ShortRun("resnet step bf16", "resnet_step", (*RESNET, "--precision=bf16"), ("step_seconds",), ranks=2),
    ShortRun("pipeline step", "pipeline_benchmark", ("--width=256", "--layers=2", "--rounds=9"), ("schedules/*/step_seconds",)),
    ShortRun("tensor parallel", "tensor_parallel", (*SMALL_GPT, "--vocabulary=512", "--rounds=7"), ("*/seconds",), ranks=2),
    ShortRun("bucket sizes", "overlap", (*SMALL_GPT, "--rounds=7"), ("steps/*/step_seconds",), ranks=2),
    ShortRun("compression", "compression_benchmark", ("--layers=1", "--width=192", "--batch=1", "--steps=7", "--between-ranks"),
             ("*/step_seconds",), ranks=2),
    ShortRun("replica check", "replica_check", ("--batch=2", "--block=64", "--rounds=7"), ("seconds_with",), ranks=2),
    ShortRun("recurrent", "lstm_benchmark", ("--hidden=256", "--time=32"), ("lstm_seconds", "gru_seconds")),
    ShortRun("optimizers", "optimizer_benchmark", ("--layers=2", "--rounds=5"), ("*/seconds",)),
    ShortRun("all-reduce", "allreduce", ("--least-bytes=4096", f"--most-bytes={16 << 20}", "--factor=16", "--rounds=3"),
             ("*/group_seconds",), ranks=2),
    ShortRun("sharded step", "sharded_step", ("--millions=10", "--rounds=7"), ("sharded_seconds", "replicated_seconds"),
             ranks=2),
    ShortRun("flight recorder", "flight_benchmark", ("--bytes=4096,1048576", "--calls=100", "--rounds=7"),
             ("sizes/*/on_seconds",), ranks=2),
    ShortRun("images", "image_loader_benchmark", ("--steps=21",), ("*/load_seconds/*",)),
    ShortRun("checkpoint", "checkpoint_benchmark", ("--megabytes=40", "--rounds=3", "--directory={folder}"),
             ("save_seconds", "load_seconds"), ranks=2),
    ShortRun("operations", "ops_benchmark", ("--seconds=0.005", "--calls=3"), ("operations/*/seconds",)),
)


def programs_in(folder):
    """The folder of programs for a checkout, a build folder or a folder of programs; None where there are none."""
    folder = pathlib.Path(folder)
    for bin_folder in (folder / "build" / "release" / "bin", folder / "bin", folder):
        if any((bin_folder / run.program).exists() for run in SHORT_RUNS):
            return bin_folder
    return None


def library_in(programs):
    """The library beside the programs; None where only the programs were copied."""
    for pattern in ("../src/libtrireme.a", "../src/libtrireme.so"):
        for path in programs.glob(pattern):
            return path
    return None


def numbers_in(figures, path=""):
    """(path, number) of all numbers in a JSON value; elements of a list are named by their "bytes" or their index."""
    if isinstance(figures, dict):
        items = figures.items()
    elif isinstance(figures, list):
        items = ((element.get("bytes", index) if isinstance(element, dict) else index, element)
                 for index, element in enumerate(figures))
    elif isinstance(figures, (int, float)) and not isinstance(figures, bool):
        yield path, float(figures)
        return
    else:
        return
    for key, value in items:
        yield from numbers_in(value, f"{path}/{key}" if path else str(key))


def figures_of(run, figures):
    return {path: value for path, value in numbers_in(figures)
            if value > 0 and any(fnmatch.fnmatchcase(path, pattern) for pattern in run.figures)}


class Sides:
    """Both checkouts' runs of one program: its seconds and its memory, pair by pair."""

    def __init__(self, run):
        self.run = run
        self.pairs = {}  # figure: [[ours, theirs], ...]
        self.alone = {"ours": [], "theirs": []}  # figures that the other side lacks
        self.memory = []
        self.seconds = 0.0
        self.failure = None

    def take_pair(self, ours, theirs, environment, folder, ours_first, limit_seconds):
        """`ours`, `theirs`: folders with programs."""
        begin = time.monotonic()
        runs = {}
        for side, programs in (("ours", ours), ("theirs", theirs)) if ours_first else (("theirs", theirs), ("ours", ours)):
            arguments = [argument.format(folder=folder) for argument in self.run.arguments]
            command = Command(under_mpirun(self.run.ranks, [str(programs / self.run.program), *arguments]), environment)
            try:
                runs[side] = run_once(command, limit_seconds)
            except Failure as failure:
                raise Failure(f"{side} {failure.what}", failure.output) from failure
        figures = {side: figures_of(self.run, run.figures) for side, run in runs.items()}
        for path in figures["ours"].keys() & figures["theirs"].keys():
            self.pairs.setdefault(path, []).append([figures["ours"][path], figures["theirs"][path]])
        self.alone = {side: sorted(figures[side].keys() - figures[other].keys())
                      for side, other in (("ours", "theirs"), ("theirs", "ours"))}
        self.memory.append([runs["ours"].peak_bytes, runs["theirs"].peak_bytes])
        self.seconds += time.monotonic() - begin


def compare(ours, theirs, runs, pairs, minutes, environment, folder, say):
    """Runs all programs once, then all again, until each has its pairs, so that a disturbance of the machine affects all of them.
    After an interrupt the pairs so far are kept. Returns the sides, and whether it was interrupted."""
    end = time.monotonic() + 60 * minutes
    sides = [Sides(run) for run in runs]
    try:
        for index in range(pairs):
            for side in sides:
                if side.failure:
                    continue
                try:
                    side.take_pair(ours, theirs, environment, folder, index % 2 == 0, limit_seconds=120)
                except Failure as failure:
                    side.failure = failure
                    say(f"{side.run.name}: {failure.what}\n{failure.output}")
            if index == 0:
                leave_out(sides, pairs, minutes, end - time.monotonic())
                seconds = sum((pairs - 1) * side.seconds for side in sides if not side.failure)
                say(f"{pairs - 1} more rounds take about {seconds / 60:.1f} minutes")
    except KeyboardInterrupt:
        say("interrupted")
        return sides, True
    return sides, False


def leave_out(sides, pairs, minutes, seconds):
    """After the first round: the programs that do not fit into the `seconds` that are left."""
    for side in sides:
        if side.failure:
            continue
        if (pairs - 1) * side.seconds > seconds:
            side.failure = Failure(f"skipped: {pairs} pairs take {pairs * side.seconds:.0f} s, which do not fit into "
                                   f"{minutes:g} minutes; raise --minutes")
        else:
            seconds -= (pairs - 1) * side.seconds


def judged(sides):
    """A line for each figure, the slower ones first."""
    figures = []
    for side in sides:
        for path, pairs in sorted(side.pairs.items()):
            if side.failure:
                continue
            interval = interval_of([ours / theirs for ours, theirs in pairs])
            figures.append({"name": f"{side.run.name}: {path}", "pairs": pairs, "interval": interval,
                            "verdict": verdict(interval)})
    order = ["slower", "faster", "unclear", "same"]
    return sorted(figures, key=lambda figure: order.index(figure["verdict"]))


def verdict_text(figure):
    interval = figure["interval"]
    if figure["verdict"] != "unclear":
        return figure["verdict"]
    more = more_pairs(interval)
    return "unclear: " + (f"about {more} more pairs would say" if more else "too noisy or too near a bound for pairs to say")


def line_of(figure):
    interval = figure["interval"]
    bounds = "-" if interval.low is None else f"{interval.low:.3f} to {interval.high:.3f}"
    return [figure["name"], verdict_text(figure), f"{interval.median:.3f}", bounds, str(interval.pairs),
            time_text(statistics.median(pair[0] for pair in figure["pairs"])),
            time_text(statistics.median(pair[1] for pair in figure["pairs"]))]


def memory_table(sides):
    rows = []
    for side in sides:
        if side.memory and not side.failure:
            ours, theirs = (statistics.median(pair[index] for pair in side.memory) for index in (0, 1))
            rows.append([side.run.name, f"{ours / 2**20:.1f} MiB", f"{theirs / 2**20:.1f} MiB", f"{ours / theirs:.3f}"])
    return Table(["program", "ours, peak memory of the largest process", "theirs", "ours / theirs"], rows)


def size_table(ours, theirs):
    rows = []
    for name, own, other in [("library", library_in(ours), library_in(theirs)),
                             *((run.program, ours / run.program, theirs / run.program)
                               for run in {run.program: run for run in SHORT_RUNS}.values())]:
        if own and other and own.exists() and other.exists():
            sizes = [path.stat().st_size for path in (own, other)]
            rows.append([name, *(f"{size / 1e6:.2f} MB" for size in sizes), f"{sizes[0] / sizes[1]:.3f}"])
    return Table(["file", "ours", "theirs", "ours / theirs"], rows)


def against_page(sides, figures, ours, theirs, machine, pairs):
    slower = [figure for figure in figures if figure["verdict"] == "slower"]
    coverage = interval_of([1.0] * pairs).coverage
    confidence = f"the interval covers {100 * coverage:.1f} %" if coverage else "too few pairs for an interval"
    unclear = sum(figure["verdict"] == "unclear" for figure in figures)
    names = ", ".join(figure["name"] for figure in slower) or "nothing"
    first = [Text(f"Slower: {names}. Unclear: {unclear} of {len(figures)} figures."),
             Text(f"Ratios are times of {ours} / times of {theirs}, {pairs} pairs of runs in turn; {confidence}. Slower: the "
                  "whole interval lies above 1.02. Faster: below 0.98. Same: between them. Unclear: it reaches across a "
                  "bound.")]
    parts = [Table(["figure", "is", "ours / theirs", "95 % interval", "pairs", "ours", "theirs"],
                   [line_of(figure) for figure in figures])]
    bars = [Bar(figure["name"], figure["interval"].median, figure["interval"].low, figure["interval"].high)
            for figure in figures]
    if bars:
        parts.append(Intervals("Times the time (right of 1: slower)", bars))
    sections = [Section("Verdict", first), Section("Times", parts), Section("Memory", [memory_table(sides)]),
                Section("Size", [size_table(ours, theirs)]), Section("Machine", [Table(["what", "is"], machine)])]
    lines = []
    for side in sides:
        if side.failure:
            lines.append(Text(f"{side.run.name}: {side.failure.what}"))
            lines += [Output(side.failure.output)] if side.failure.output else []
        lines += [Text(f"{side.run.name}: only {who} write {', '.join(names)}") for who, names in side.alone.items() if names]
    if lines:
        sections.insert(1, Section("Not compared", lines))
    return Page("What got slower", sections)
