"""Code that compare_lstm and compare_attention share: runs a program of ours and a PyTorch script in turn, round by round."""

import argparse
import json
import pathlib
import statistics
import subprocess
import tempfile

HERE = pathlib.Path(__file__).resolve().parent


def compare(description, program, script, sizes, measured, ours_alone=()):
    """`sizes`: (name, value) of the integers that both sides get. `measured`: the names of the figures of both sides. `ours_alone`: (name,
    the figure to compare it with, title) of other libraries' figures that our program measures."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    sizes = [*sizes, ("threads", 1), ("steps", 9)]
    for name, value in sizes:
        parser.add_argument(f"--{name}", type=int, default=value)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--python", action="append")
    parser.add_argument("--program", default=HERE.parent.parent / "build/release/bin" / program)
    options = parser.parse_args()
    pythons = options.python or ["/usr/bin/python3"]
    shared = [f"--{name}={getattr(options, name)}" for name, _ in sizes]

    def run(command, result):
        subprocess.run([*map(str, command), *shared, "--json", str(result)], check=True, stdout=subprocess.DEVNULL)
        return json.loads(result.read_text())

    ours, theirs = [], {python: [] for python in pythons}
    with tempfile.TemporaryDirectory() as folder:
        result = pathlib.Path(folder) / "result.json"
        for _ in range(options.rounds):
            ours.append(run([options.program], result))
            for python in pythons:
                theirs[python].append(run([python, HERE / script], result))

    def median(runs, name):
        return statistics.median(figures[f"{name}_seconds"] for figures in runs)

    print(", ".join(f"{name} {getattr(options, name)}" for name, _ in sizes[:-1]) +
          f", medians of {options.rounds} interleaved rounds")
    for name in measured:
        own = median(ours, name)
        print(f"{name:22} {'trireme':24} {1e3 * own:8.2f} ms")
        peers = [(title, median(ours, of_other)) for of_other, beside, title in ours_alone if beside == name]
        peers += [("torch " + theirs[python][0]["version"], median(theirs[python], name)) for python in pythons]
        for title, other in peers:
            print(f"{name:22} {title:24} {1e3 * other:8.2f} ms   ours: {other / own:.2f}x the speed")
