"""Finds figures of two results that differ by more than both spreads. Weaker than two checkouts, since nothing ran in turn."""

from .page import Page, Section, Table, Text, time_text
from .pairs import FASTER, SLOWER, interval_of


def rows_of(report):
    return {row["name"]: row for result in report["results"] for row in result["rows"]}


def compared(ours, theirs):
    """A line for each row that both have: the ratio of the medians of our own times, and whether it is significant: only where
    their intervals do not overlap."""
    figures = []
    others = rows_of(theirs)
    for name, row in rows_of(ours).items():
        if name not in others:
            continue
        own, other = (interval_of([pair[0] for pair in side["pairs"]]) for side in (row, others[name]))
        ratio = own.median / other.median
        verdict = "no difference beyond the spreads"
        if own.low is not None and other.low is not None:
            if own.low > other.high and ratio > SLOWER:
                verdict = "slower"
            elif own.high < other.low and ratio < FASTER:
                verdict = "faster"
        figures.append({"name": name, "verdict": verdict, "ratio": ratio, "ours": own, "theirs": other})
    return sorted(figures, key=lambda figure: {"slower": 0, "faster": 1}.get(figure["verdict"], 2))


def spread(interval):
    return "-" if interval.low is None else f"{time_text(interval.low)} to {time_text(interval.high)}"


def results_page(figures, ours, theirs):
    slower = ", ".join(figure["name"] for figure in figures if figure["verdict"] == "slower") or "nothing"
    lines = [[figure["name"], figure["verdict"], f"{figure['ratio']:.3f}",
              time_text(figure["ours"].median), spread(figure["ours"]),
              time_text(figure["theirs"].median), spread(figure["theirs"])] for figure in figures]
    facts = {name: [name, value, ""] for name, value in ours["machine"]}
    for name, value in theirs["machine"]:
        facts.setdefault(name, [name, "", ""])[2] = value
    return Page("What got slower, by two results", [
        Section("Verdict", [Text(f"Slower: {slower}."),
                            Text("Weaker than a comparison of two checkouts: the two results were not measured in turn, so "
                                 "what the machine did in between counts as well. Named is only what differs by more than "
                                 "both spreads.")]),
        Section("Times", [Table(["figure", "is", "ours / theirs", "ours", "95 % interval", "theirs", "95 % interval"], lines)]),
        Section("Machine", [Table(["what", "ours", "theirs"], list(facts.values()))])])

