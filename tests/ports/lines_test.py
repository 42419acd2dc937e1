#!/usr/bin/env python3
"""Checks that each port has at most 1.2 times the lines of its PyTorch original; empty lines, comments and imports don't count."""
import sys
from pathlib import Path

FOLDER = Path(__file__).resolve().parent
LONGEST = 1.2  # times the original


def lines_of_code(path, *others):
    lines = [line.strip() for line in path.read_text(encoding="utf-8").splitlines()]
    return sum(1 for line in lines if line and not line.startswith(others))


def main():
    problems = []
    ports = sorted(path for path in FOLDER.glob("*.cpp") if not path.stem.endswith("_test"))
    for port in ports:
        here = lines_of_code(port, "//", "#include")
        there = lines_of_code(port.with_suffix(".py"), "#", "import ", "from ")
        print(f"{port.stem}: {here} lines, {there} of its original, {here / there:.2f} times")
        if here > LONGEST * there:
            problems.append(f"{port.name} is more than {LONGEST} times as long as {port.stem}.py")
    if not ports:
        problems.append("there are no ports")
    print("\n".join(problems))
    sys.exit(bool(problems))


main()
