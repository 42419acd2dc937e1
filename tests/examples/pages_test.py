#!/usr/bin/env python3
"""Checks that the C++ of docs/from_pytorch.md is that of from_pytorch_test.cpp, and README's program is that of the course;
--update copies them into the pages."""
import re
import sys
import textwrap
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs/from_pytorch.md"
BLOCK = re.compile(r"(<!-- (\w+) -->\n```cpp\n)(.*?)(```\n)", re.S)
LEAST = 30  # idioms


def snippets():
    source = (ROOT / "tests/examples/from_pytorch_test.cpp").read_text()
    found = re.findall(r"^ *// begin: (\w+)\n(.*?)^ *// end\n", source, re.S | re.M)
    return {name: textwrap.dedent(text) for name, text in found}


def problem_of_readme():
    readme = ROOT / "README.md"
    program = (ROOT / "examples/02_your_data.cpp").read_text().split("\n", 2)[2]  # without what it says of itself
    text = readme.read_text()
    shown = re.search(r"```cpp\n(.*?)```\n", text, re.S)
    if shown and shown[1] == program:
        return []
    if shown and "--update" in sys.argv:
        readme.write_text(text[:shown.start(1)] + program + text[shown.end(1):])
        return []
    return ["README.md has another program than examples/02_your_data.cpp: run pages_test.py --update"]


def main():
    compiled = snippets()
    page = PAGE.read_text()
    used = [match[2] for match in BLOCK.finditer(page)]
    problems = [f"the page lacks {name}" for name in compiled if name not in used]
    problems += [f"nothing compiles {name}" for name in used if name not in compiled]
    problems += [f"the page has {name} twice" for name in set(used) if used.count(name) > 1]
    if page.count("```cpp\n") != len(used):
        problems.append("a C++ block has no <!-- name --> before it, so nothing compiles it")
    if page.count("```python\n") < LEAST or len(used) < LEAST:
        problems.append(f"{page.count('```python')} and {len(used)} sides of idioms; the page has {LEAST} or more")
    if not problems and "--update" in sys.argv:
        PAGE.write_text(BLOCK.sub(lambda match: match[1] + compiled[match[2]] + match[4], page))
    elif not problems:
        problems = [f"{match[2]} differs: run pages_test.py --update" for match in BLOCK.finditer(page)
                    if match[3] != compiled[match[2]]]
    problems += problem_of_readme()
    print("\n".join(problems) or f"{len(used)} idioms")
    sys.exit(bool(problems))


main()
