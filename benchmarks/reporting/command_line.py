"""Compares this machine's programs with other libraries or another checkout, and writes a page.

  benchmarks/report                          the page of this machine: build/report/report.md and report.html
  benchmarks/report --only "gpt fp32"        only one comparison; --list names them all
  benchmarks/report --against ../before      compares with another checkout; exit code 1 where something is slower
  benchmarks/report --against OLD_RESULT     compares the result in --output with that of an earlier report, by medians
"""

import argparse
import datetime
import json
import os
import pathlib
import signal
import sys
import time

from . import against, html_page, machine, markdown, pytorch, results
from .budget import run_all
from .comparisons import COMPARISONS
from .page import report_page
from .processes import environment_for
from .rounds import Context

ROOT = pathlib.Path(__file__).resolve().parents[2]


def parsed(arguments):
    parser = argparse.ArgumentParser(prog="benchmarks/report", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--list", action="store_true", help="print the comparisons and end")
    parser.add_argument("--only", action="append", metavar="NAMES", help="comparisons by name, commas between them; repeatable")
    parser.add_argument("--minutes", type=float, default=30, help="the time for everything [30]")
    parser.add_argument("--pairs", type=int, default=15, help="of each comparison; 95 %% needs 6, a verdict 15 [15]")
    parser.add_argument("--python", action="append", metavar="PYTHON", help="has torch; repeatable [/usr/bin/python3, python3]")
    parser.add_argument("--isa", choices=["baseline", "avx2", "avx512"], help="no more than these instructions, on every side")
    parser.add_argument("--text", type=pathlib.Path, help="what the GPT of gpt quality reads [the library's own sources]")
    parser.add_argument("--programs", type=pathlib.Path, default=ROOT / "build" / "release" / "bin", help="folder of ours")
    parser.add_argument("--output", type=pathlib.Path, default=ROOT / "build" / "report", help="folder of the pages")
    parser.add_argument("--against", type=pathlib.Path, metavar="FOLDER", help="a checkout, its build folder, or a result")
    options = parser.parse_args(arguments)
    if options.minutes <= 0 or options.pairs < 1:
        parser.error("--minutes and --pairs are above 0")
    if options.text and not options.text.exists():
        parser.error(f"--text {options.text} is not there")
    return parser, options


def chosen(parser, only, rows):
    """The rows with these names, in the order of the table; all rows where there are no names."""
    if not only:
        return list(rows)
    names = [name.strip() for names in only for name in names.split(",")]
    unknown = [name for name in names if name not in [row.name for row in rows]]
    if unknown:
        parser.error(f"--only {unknown[0]}: there is no such comparison; there are " + ", ".join(row.name for row in rows))
    return [row for row in rows if row.name in names]


def say(text, end="\n"):
    print(text, end=end, flush=True)


def write(page, folder, name, figures):
    (folder / f"{name}.json").write_text(json.dumps(figures, indent=1), encoding="utf-8")
    (folder / f"{name}.md").write_text(markdown.written(page), encoding="utf-8")
    (folder / f"{name}.html").write_text(html_page.written(page), encoding="utf-8")
    say(f"{folder / name}.md and .html")


def raise_interrupt(*_):
    raise KeyboardInterrupt


def report(options, comparisons):
    begin, load = time.monotonic(), os.getloadavg()[0]
    torches, missing = pytorch.find(options.python)
    for line in [*(f"{torch.label} of {torch.python}" for torch in torches), *missing]:
        say(line)
    facts = machine.describe(options.programs, ROOT, torches, options.isa)
    before = machine.steal()
    context = Context(options.programs, options.output, options.pairs, environment_for(options.isa), torches, options.text)
    outcome, interrupted = run_all(comparisons, context, options.minutes, say)
    total, stolen = (after - first for after, first in zip(machine.steal(), before))
    facts.append(["taken by other virtual machines", f"{100 * stolen / max(total, 1):.1f} % of the time"])
    figures = {"date": datetime.date.today().isoformat(), "seconds": time.monotonic() - begin, "load": load, "machine": facts,
               "missing": missing, "results": outcome}
    write(report_page(figures), options.output, "report", figures)
    if interrupted:
        return 130
    return 1 if any("failure" in result or result.get("quality", {}).get("status", "success") != "success"
                    for result in outcome) else 0


def compare_checkouts(options, runs, theirs):
    facts = machine.describe(options.programs, ROOT, [], options.isa)
    sides, interrupted = against.compare(options.programs, theirs, runs, options.pairs, options.minutes,
                                         environment_for(options.isa), options.output, say)
    figures = against.judged(sides)
    for figure in figures:
        say("  ".join(against.line_of(figure)[:4]))
    page = against.against_page(sides, figures, options.programs, theirs, facts, options.pairs)
    write(page, options.output, "against", [{key: figure[key] for key in ("name", "verdict", "pairs")} for figure in figures])
    slower = [figure["name"] for figure in figures if figure["verdict"] == "slower"]
    unclear = sum(figure["verdict"] == "unclear" for figure in figures)
    say(f"slower: {', '.join(slower) or 'nothing'}; unclear: {unclear} of {len(figures)}")
    if interrupted:
        return 130
    if slower:
        return 1
    return 2 if any(side.failure for side in sides) or not figures else 0


def compare_results(options, theirs):
    mine = options.output / "report.json"
    if not mine.exists():
        say(f"{mine} is not there: run benchmarks/report first, or name its folder by --output")
        return 2
    ours = json.loads(mine.read_text(encoding="utf-8"))
    other = json.loads(theirs.read_text(encoding="utf-8"))
    figures = results.compared(ours, other)
    say("weaker than two checkouts: the results were not measured in turn")
    for figure in figures:
        say(f"{figure['name']}  {figure['verdict']}  {figure['ratio']:.3f}")
    plain = [{key: figure[key] for key in ("name", "verdict", "ratio")} for figure in figures]
    write(results.results_page(figures, ours, other), options.output, "against", plain)
    return 1 if any(figure["verdict"] == "slower" for figure in figures) else 0


def main(arguments):
    parser, options = parsed(arguments)
    signal.signal(signal.SIGTERM, raise_interrupt)
    theirs = against.programs_in(options.against) if options.against else None
    earlier = options.against / "report.json" if options.against else None
    rows = against.SHORT_RUNS if theirs else COMPARISONS
    if options.list:
        for row in rows:
            say(f"{row.name:16} {getattr(row, 'question', row.program)}")
        return 0
    wanted = chosen(parser, options.only, rows)
    options.output.mkdir(parents=True, exist_ok=True)
    try:
        if theirs:
            return compare_checkouts(options, wanted, theirs)
        if earlier and earlier.exists():
            return compare_results(options, earlier)
        if options.against:
            parser.error(f"--against {options.against}: neither a checkout with programs in build/release/bin nor a result "
                         "with report.json")
        return report(options, wanted)
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return 130
