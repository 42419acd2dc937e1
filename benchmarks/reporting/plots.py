"""Plots of a page: as SVG and as lines of text."""

import html
import math

WIDTH, NAMES, LINE = 880, 320, 22  # pixels


def nice_range(values):
    """A range with 1 in it and all values, a little wider than they need."""
    low, high = min([*values, 1]), max([*values, 1])
    margin = 0.05 * (high - low) or 0.05
    return (0 if 0 <= low < 0.3 * high else low - margin), high + margin


def ticks(low, high):
    step = 10 ** math.floor(math.log10(high - low))
    for factor in (0.2, 0.5, 1, 2):
        if (high - low) / (step * factor) <= 8:
            step *= factor
            break
    first = math.ceil(low / step)
    return [round(index * step, 10) for index in range(first, math.floor(high / step) + 1)]


def values_of(bars):
    return [value for bar in bars for value in (bar.low, bar.median, bar.high) if value is not None]


def text_at(x, y, text, anchor="start", kind=""):
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"{kind}>{html.escape(text)}</text>'


def line(x1, y1, x2, y2, kind):
    return f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" class="{kind}"/>'


def svg(height, title, marks):
    return (f'<svg viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}" role="img" '
            f'aria-label="{html.escape(title, quote=True)}">{"".join(marks)}</svg>')


def intervals_svg(plot):
    low, high = nice_range(values_of(plot.bars))
    height = LINE * len(plot.bars) + 34

    def x(value):
        return NAMES + (WIDTH - NAMES - 70) * (value - low) / (high - low)

    marks = []
    for tick in ticks(low, high):
        marks += [line(x(tick), 4, x(tick), height - 26, "grid"), text_at(x(tick), height - 10, f"{tick:g}", "middle")]
    marks.append(line(x(1), 4, x(1), height - 26, "one"))
    for index, bar in enumerate(plot.bars):
        y = LINE * index + 16
        marks.append(text_at(NAMES - 12, y + 4, bar.name, "end"))
        if bar.low is not None:
            marks.append(line(x(bar.low), y, x(bar.high), y, "interval"))
        marks.append(f'<circle cx="{x(bar.median):.1f}" cy="{y}" r="4" class="median"/>')
        marks.append(text_at(WIDTH - 8, y + 4, f"{bar.median:.2f}", "end"))
    return svg(height, plot.title, marks)


def curve_svg(plot):
    height, left, bottom = 260, 60, 40
    seconds = [point[0] for point in plot.points]
    values = [*(point[1] for point in plot.points), plot.target]
    low, high = min(values), max(values)
    margin = 0.05 * (high - low) or 0.05
    low, high = low - margin, high + margin
    last = max(seconds) or 1

    def x(value):
        return left + (WIDTH - left - 20) * value / last

    def y(value):
        return height - bottom - (height - bottom - 12) * (value - low) / (high - low)

    marks = []
    for tick in ticks(0, last):
        marks += [line(x(tick), 12, x(tick), height - bottom, "grid"),
                  text_at(x(tick), height - bottom + 16, f"{tick:g}", "middle")]
    for tick in ticks(low, high):
        marks += [line(left, y(tick), WIDTH - 20, y(tick), "grid"), text_at(left - 8, y(tick) + 4, f"{tick:g}", "end")]
    marks.append(line(left, y(plot.target), WIDTH - 20, y(plot.target), "one"))
    marks.append(text_at(left + 6, y(plot.target) - 5, f"target {plot.target:g}"))
    path = " ".join(f"{x(point[0]):.1f},{y(point[1]):.1f}" for point in plot.points)
    marks.append(f'<polyline points="{path}" class="curve"/>')
    marks += [f'<circle cx="{x(point[0]):.1f}" cy="{y(point[1]):.1f}" r="3" class="median"/>' for point in plot.points]
    marks.append(text_at((left + WIDTH) / 2, height - 6, "seconds", "middle"))
    return svg(height, plot.title, marks)


def intervals_text(plot, columns=60):
    """Lines of text: an o at the median, dashes along the interval, a bar at 1."""
    low, high = nice_range(values_of(plot.bars))
    longest = max(len(bar.name) for bar in plot.bars)

    def column(value):
        return min(columns - 1, max(0, round((value - low) / (high - low) * (columns - 1))))

    lines = []
    for bar in plot.bars:
        cells = [" "] * columns
        cells[column(1)] = "|"
        if bar.low is not None:
            for index in range(column(bar.low), column(bar.high) + 1):
                cells[index] = "-"
        cells[column(bar.median)] = "o"
        lines.append(f"{bar.name:<{longest}} {''.join(cells)} {bar.median:.2f}")
    scale = f"{low:.2f}".ljust(columns - 6) + f"{high:.2f}".rjust(6)
    return "\n".join([*lines, " " * (longest + 1) + scale])
