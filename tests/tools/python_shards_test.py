#!/usr/bin/env python3
"""The programs of docs/trireme_data.md write shards that trireme-data accepts. Usage: python_shards_test.py TRIREME_DATA

Runs those whose packages are there, with Ray only if TRIREME_TEST_RAY is set, for it takes long to start. Exit code 77: none.
"""
import importlib.util
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

PAGE = pathlib.Path(__file__).resolve().parents[2] / "docs/trireme_data.md"
WRITE, DASK, RAY = re.findall(r"```python\n(.*?)```\n", PAGE.read_text(encoding="utf-8"), re.S)


def has(*packages):
    return all(importlib.util.find_spec(package) for package in packages)


def main():
    if not has("numpy", "safetensors"):
        print("numpy or safetensors is not there")
        sys.exit(77)
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)

        def run(program):
            (folder / "program.py").write_text(program, encoding="utf-8")
            subprocess.run([sys.executable, "program.py"], cwd=folder, check=True)

        def check(pattern, documents):
            files = sorted(str(file) for file in folder.glob(pattern))
            result = subprocess.run([sys.argv[1], "verify", *files], capture_output=True, text=True, check=False)
            print(result.stdout, result.stderr)
            assert result.returncode == 0 and f" {documents} documents" in result.stdout, pattern

        (folder / "write_shard.py").write_text(WRITE, encoding="utf-8")
        run("from write_shard import write_shard\n"
            "write_shard('train-0.safetensors', [[1, 2, 3], [70000], [5, 6]], sources=[0, 0, 1])\n"
            "write_shard('train-1.safetensors', [[1, 2, 3]])\n")
        check("train-*", 4)
        for number in range(3):
            lines = [json.dumps({"id": line, "text": f"line {line} of {number}"}) for line in range(250)]
            (folder / f"web-{number}.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")
        if has("dask"):
            run(DASK)
            check("dask-*", 750)
        if has("ray") and os.environ.get("TRIREME_TEST_RAY"):
            run(RAY)
            check("ray-*", 250)


main()
