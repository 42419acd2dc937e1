"""Writes a page as one self-contained HTML file."""

import html

from . import plots
from .page import Curve, Intervals, Output, Table, Text

STYLE = """
body { max-width: 1100px; margin: 2em auto; padding: 0 1em; font: 15px/1.5 sans-serif; color: #1b1f24; background: #fff; }
h1 { font-size: 1.7em; } h2 { margin-top: 2em; border-bottom: 1px solid #d0d7de; padding-bottom: .2em; }
table { border-collapse: collapse; margin: 1em 0; font-size: 13px; }
th, td { border: 1px solid #d0d7de; padding: .25em .6em; text-align: left; vertical-align: top; }
td:nth-child(n+3) { white-space: nowrap; }
th { background: #f2f5f8; }
pre { background: #f6f8fa; padding: .8em; overflow-x: auto; font-size: 12px; }
figure { margin: 1em 0; } figcaption { font-weight: bold; font-size: 13px; }
svg { max-width: 100%; height: auto; }
svg text { font: 12px sans-serif; fill: #1b1f24; }
.grid { stroke: #e3e8ed; } .one { stroke: #b42318; stroke-dasharray: 4 3; }
.interval { stroke: #1f5fa8; stroke-width: 3; } .median { fill: #0b3d78; }
.curve { fill: none; stroke: #1f5fa8; stroke-width: 2; }
"""


def table(part):
    def row(cells, tag):
        return "<tr>" + "".join(f"<{tag}>{html.escape(cell)}</{tag}>" for cell in cells) + "</tr>"

    return "<table>" + row(part.head, "th") + "".join(row(cells, "td") for cells in part.rows) + "</table>"


def figure(title, svg):
    return f"<figure><figcaption>{html.escape(title)}</figcaption>{svg}</figure>"


def part_html(part):
    if isinstance(part, Text):
        return f"<p>{html.escape(part.text)}</p>"
    if isinstance(part, Output):
        return f"<pre>{html.escape(part.text)}</pre>"
    if isinstance(part, Table):
        return table(part)
    if isinstance(part, Intervals):
        return figure(part.title, plots.intervals_svg(part))
    if isinstance(part, Curve):
        return figure(part.title, plots.curve_svg(part))
    raise TypeError(f"a page has no {type(part).__name__}")


def written(page):
    sections = [f"<h2>{html.escape(section.heading)}</h2>" + "\n".join(part_html(part) for part in section.parts)
                for section in page.sections]
    title = html.escape(page.title)
    return ("<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">"
            f"<title>{title}</title><style>{STYLE}</style></head>\n<body><h1>{title}</h1>\n" + "\n".join(sections) +
            "\n</body></html>\n")
