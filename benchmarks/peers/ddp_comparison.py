"""Code that compare_gpt, compare_mlp and compare_resnet share: runs a program of ours and a PyTorch DDP script in turn."""

import argparse
import json
import os
import pathlib
import socket
import statistics
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def parse_options(description, program, sizes):
    """The options of every comparison, and `sizes`, pairs of (name, value), which both sides get."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name, value in [("ranks", 2), ("threads", 1), ("rounds", 3), ("steps", 5), *sizes]:
        parser.add_argument(f"--{name}", type=int, default=value)
    parser.add_argument("--precision", choices=["fp32", "bf16"], default="fp32", help="bf16: PyTorch under autocast")
    parser.add_argument("--python", action="append")
    parser.add_argument("--program", type=pathlib.Path, default=HERE.parent.parent / "build/release/bin" / program)
    parser.add_argument("--json", type=pathlib.Path)
    options = parser.parse_args()
    options.shared = [f"--{name}={getattr(options, name.replace('-', '_'))}"
                      for name in ["threads", "steps", "precision", *(name for name, _ in sizes)]]
    return options


def run_ours(options, folder):
    result = folder / "ours.json"
    environment = dict(os.environ, OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1")
    subprocess.run(["mpirun", "-n", str(options.ranks), str(options.program), *options.shared, "--no-floor",
                    "--json", str(result)], check=True, stdout=subprocess.DEVNULL, env=environment)
    return json.loads(result.read_text())


def run_torch(python, script, arguments, options, folder):
    result = folder / "torch.json"
    environment = dict(os.environ, WORLD_SIZE=str(options.ranks), MASTER_ADDR="127.0.0.1", MASTER_PORT=str(free_port()),
                       OMP_NUM_THREADS=str(options.threads))
    processes = [subprocess.Popen([python, str(HERE / script), *options.shared, *arguments, "--json", str(result)],
                                  env=dict(environment, RANK=str(rank))) for rank in range(options.ranks)]
    if any([process.wait() for process in processes]):
        sys.exit(f"{python} {script} failed")
    return json.loads(result.read_text())


def median(runs, key):
    return statistics.median(run[key] for run in runs)


def compare(options, script, unit, variants=((),)):
    """`variants`: arguments for the script; it is timed with each, as a peer of its own."""
    peers = [(python, list(variant)) for python in options.python or ["/usr/bin/python3"] for variant in variants]
    ours, theirs = [], [[] for _ in peers]
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        for _ in range(options.rounds):
            ours.append(run_ours(options, folder))
            for (python, variant), runs in zip(peers, theirs):
                runs.append(run_torch(python, script, variant, options, folder))

    speed_key = f"{unit}_per_second"

    def line(name, runs):
        return (f"{name:44} {median(runs, speed_key):8.{1 if unit == 'images' else 0}f} {unit}/s  "
                f"{median(runs, 'peak_rss_bytes') / 2**20:6.0f} MiB a rank")

    print(f"{options.ranks} ranks x {options.threads} thread(s), {options.precision}, "
          f"medians of {options.rounds} interleaved rounds")
    print(line("trireme", ours))
    summary = {"ours": ours, "peers": []}
    for (python, variant), runs in zip(peers, theirs):
        speed = median(ours, speed_key) / median(runs, speed_key)
        memory = median(ours, "peak_rss_bytes") / median(runs, "peak_rss_bytes")
        name = " ".join(["torch", runs[0]["version"], *variant])
        print(f"{line(name, runs)}   ours: {speed:.2f}x the speed, {memory:.2f}x the memory")
        summary["peers"].append({"python": python, "arguments": variant, "runs": runs, "speed_ratio": speed,
                                 "memory_ratio": memory})
    if options.json:
        options.json.write_text(json.dumps(summary, indent=1))
