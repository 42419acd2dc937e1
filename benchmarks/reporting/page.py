"""The parts of a page, and the page of a report. markdown and html_page write it."""

import dataclasses
import statistics
from typing import List, Optional

from .comparisons import SHARE, SPEED, TIME
from .pairs import interval_of
from .rounds import ratios_of


@dataclasses.dataclass
class Text:
    text: str


@dataclasses.dataclass
class Output:
    """The output of a program."""

    text: str


@dataclasses.dataclass
class Table:
    head: List[str]
    rows: List[List[str]]


@dataclasses.dataclass
class Bar:
    name: str
    median: float
    low: Optional[float]
    high: Optional[float]


@dataclasses.dataclass
class Intervals:
    """One line for each ratio, with its interval, and a line at 1."""

    title: str
    bars: List[Bar]


@dataclasses.dataclass
class Curve:
    title: str
    points: List[List[float]]  # seconds, quality
    target: float


@dataclasses.dataclass
class Section:
    heading: str
    parts: list


@dataclasses.dataclass
class Page:
    title: str
    sections: List[Section]


QUIET_LOAD = 0.5  # the most runnable processes before the first run
KINDS = {SPEED: "times the speed", TIME: "times the time", SHARE: "of it"}


def time_text(seconds):
    for factor, unit in ((1, "s"), (1e3, "ms")):
        if seconds * factor >= 1:
            return f"{seconds * factor:.3g} {unit}"
    return f"{seconds * 1e6:.3g} us"


def number(ratio, kind):
    if ratio is None:
        return "-"
    return f"{100 * ratio:.0f} %" if kind == SHARE else f"{ratio:.3f}"


def interval_text(interval, kind):
    if interval.low is None:
        return "- (fewer than 6 pairs)"
    return f"{number(interval.low, kind)} to {number(interval.high, kind)}"


def table_of(rows):
    lines = []
    for row in rows:
        interval = interval_of(ratios_of(row))
        lines.append([row["name"], row["theirs"], time_text(statistics.median(pair[0] for pair in row["pairs"])),
                      time_text(statistics.median(pair[1] for pair in row["pairs"])),
                      f"{number(interval.median, row['ratio'])} {KINDS[row['ratio']]}", interval_text(interval, row["ratio"]),
                      str(interval.pairs)])
    return Table(["comparison", "beside", "ours", "theirs", "ours is", "95 % interval", "pairs"], lines)


def plots_of(rows):
    titles = {SPEED: "Times the speed of the other side (right of 1: ours is faster)",
              TIME: "Times the time of the other side (left of 1: ours takes less)",
              SHARE: "Share of the ceiling (1 is all of it)"}
    for kind, title in titles.items():
        bars = []
        for row in rows:
            if row["ratio"] == kind:
                interval = interval_of(ratios_of(row))
                bars.append(Bar(row["name"], interval.median, interval.low, interval.high))
        if bars:
            yield Intervals(title, bars)


def memory_text(memory):
    text = f"Peak memory of a rank: ours {memory['ours'] / 2**20:,.0f} MiB"
    if "theirs" in memory:
        text += (f", {memory['peer']} {memory['theirs'] / 2**20:,.0f} MiB: "
                 f"{memory['ours'] / memory['theirs']:.2f} times as much")
    return text + "."


def quality_parts(quality, notes):
    reached = f"{quality['quality']:.4g} after {quality['steps']} steps, {quality['seconds']:.1f} s"
    verdict = "reached" if quality["status"] == "success" else "NOT REACHED"
    yield Text(f"Target {quality['target']:g} {verdict}: {reached}. Seed {quality['seed']}, "
               f"{quality['global_batch_size']} samples a step. " + " ".join(notes))
    yield Curve(f"{quality['benchmark']}: quality over seconds", quality["curve"], quality["target"])


def quality_table(results):
    lines = [[quality["benchmark"], f"{quality['target']:g}", "yes" if quality["status"] == "success" else "NO",
              f"{quality['quality']:.4g}", f"{quality['seconds']:.1f} s", str(quality["steps"])]
             for quality in (result["quality"] for result in results if "quality" in result)]
    head = ["benchmark", "target", "reached", "quality", "after", "steps"]
    return [Text("Time to quality, one run each:"), Table(head, lines)] if lines else []


def in_summary(result):
    """Leaves out the shares of single operations, which are too many."""
    return "ceilings" not in result


def parts_of(result):
    yield Text(f"{result['question'][0].upper()}{result['question'][1:]}. Took {result['seconds']:.0f} s.")
    if "quality" in result:
        yield from quality_parts(result["quality"], result["notes"])
    else:
        for note in result["notes"]:
            yield Text(note)
    if "skipped" in result:
        yield Text(f"Not run: {result['skipped']}.")
    if "failure" in result:
        yield Text(f"FAILED: {result['failure']['what']}")
        if result["failure"]["output"]:
            yield Output(result["failure"]["output"])
    if result["rows"]:
        yield table_of(result["rows"])
        if not in_summary(result):
            yield from plots_of(result["rows"])
    if "ours" in result["memory"]:
        yield Text(memory_text(result["memory"]))
    if result["trials"]:
        yield Text("Ways that were tried first, and the time of a single call; the fastest was taken:")
        yield Table(["way", "time"], [[trial["way"], time_text(trial["seconds"]) if trial["seconds"] else trial["why"]]
                                      for trial in result["trials"]])


def ceilings_of(results):
    for result in results:
        if "ceilings" in result:
            for key, name, unit in (("copy_bytes_per_second", "copy bandwidth, one thread", "GB/s"),
                                    ("fma_per_second", "fused multiply-adds, one thread", "GFLOP/s")):
                values = [value * 1e-9 for value in result["ceilings"][key]]
                yield [name, f"{statistics.median(values):.1f} {unit} ({min(values):.1f} to {max(values):.1f})"]


def not_run(results):
    """Name and reason of each comparison that is not on the page."""
    lines = []
    for result in results:
        if "skipped" in result:
            lines.append([result["name"], result["skipped"]])
        elif "failure" in result:
            lines.append([result["name"], f"FAILED: {result['failure']['what']}"])
    return lines


def report_page(report):
    results = report["results"]
    summary = [row for result in results if in_summary(result) for row in result["rows"]]
    facts = [*report["machine"], *ceilings_of(results)]
    first = [Text(f"Made on {report['date']} in {report['seconds'] / 60:.1f} minutes. Both sides of a comparison take turns, "
                  "round by round; a pair is what both took in one round. The figure is the median of the pairs' ratios, its "
                  "interval that of order statistics, which assumes no distribution: with 15 pairs from the 4th to the 12th.")]
    if report["load"] > QUIET_LOAD:
        first.insert(0, Text(f"THE MACHINE WAS BUSY before the first run (load average {report['load']:.2f}): these figures "
                             "are not worth keeping."))
    sections = [Section("Machine", [*first, Table(["what", "is"], facts)])]
    missing = [*([["PyTorch", line] for line in report["missing"]]), *not_run(results)]
    if missing:
        sections.append(Section("Not on this page", [Table(["what", "why"], missing)]))
    found = [*([table_of(summary), *plots_of(summary)] if summary else []), *quality_table(results)]
    if found:
        sections.append(Section("Summary", found))
    for result in results:
        sections.append(Section(result["name"], list(parts_of(result))))
    return Page("Trireme beside its peers", sections)
