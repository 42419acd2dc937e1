"""Writes a page as Markdown."""

from . import plots
from .page import Curve, Intervals, Output, Table, Text


def cell(text):
    return text.replace("|", "\\|").replace("\n", " ")


def table(part):
    lines = [part.head, ["---"] * len(part.head), *part.rows]
    return "\n".join("| " + " | ".join(cell(text) for text in row) + " |" for row in lines)


def block(text):
    return f"```\n{text}\n```"


def part_text(part):
    if isinstance(part, Text):
        return part.text
    if isinstance(part, Output):
        return block(part.text)
    if isinstance(part, Table):
        return table(part)
    if isinstance(part, Intervals):
        return f"{part.title}:\n\n{block(plots.intervals_text(part))}"
    if isinstance(part, Curve):
        return table(points_of(part))
    raise TypeError(f"a page has no {type(part).__name__}")


def points_of(curve):
    return Table(["seconds", "quality"], [[f"{seconds:.1f}", f"{value:.4g}"] for seconds, value in curve.points])


def written(page):
    sections = ["\n\n".join([f"## {section.heading}", *(part_text(part) for part in section.parts)])
                for section in page.sections]
    return "\n\n".join([f"# {page.title}", *sections]) + "\n"
