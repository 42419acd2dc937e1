#!/usr/bin/env python3
"""Checks that the programs of the course are short: at most 60 lines, the first ones 45, and at most 1.2 times the PyTorch program."""
import sys
from pathlib import Path

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
SHORTEST = {"02_your_data": 45, "03_images": 45}
PAIRS = {"02_your_data": "your_data", "03_images": "images", "07_own_transformer": "own_transformer"}


def lines_of_code(path, comment):
    lines = [line.strip() for line in path.read_text().splitlines()]
    return sum(1 for line in lines if line and not line.startswith(comment))


def main():
    problems = []
    for program in sorted(EXAMPLES.glob("[0-9][0-9]_*.cpp")):
        lines, limit = len(program.read_text().splitlines()), SHORTEST.get(program.stem, 60)
        if lines > limit:
            problems.append(f"{program.name} has {lines} lines, at most {limit} are allowed")
    for ours, theirs in PAIRS.items():
        here = lines_of_code(EXAMPLES / f"{ours}.cpp", "//")
        there = lines_of_code(EXAMPLES / "pytorch" / f"{theirs}.py", "#")
        print(f"{ours}: {here} lines of code, {theirs}.py: {there}")
        if there < 1.2 * here:
            problems.append(f"{ours} has {here} lines of code, {theirs}.py {there}: less than 1.2 times as many")
    print("\n".join(problems))
    sys.exit(bool(problems))


main()
