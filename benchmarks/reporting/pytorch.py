"""Finds Pythons that have torch, and the fastest variant of a script that does the same as a program of ours."""

import dataclasses
import pathlib
import shutil
import socket
import subprocess
import time
from typing import Dict, List

from .processes import Command, Failure, TurnTaker

PEERS = pathlib.Path(__file__).resolve().parents[1] / "peers"
NOT_FOUND = "PyTorch: not found, skipped; install python3-torch or pip install torch"


@dataclasses.dataclass
class Torch:
    python: str
    version: str

    @property
    def major(self):
        return int(self.version.split(".")[0])

    @property
    def label(self):
        return f"PyTorch {self.version}"


def torch_of(python):
    """A Python with its torch, and the file that identifies this torch; None where torch can't be imported."""
    probe = "import torch; print(torch.__version__); print(torch.__file__)"
    try:
        run = subprocess.run([python, "-c", probe], capture_output=True, text=True, timeout=120, check=True)
    except (OSError, subprocess.SubprocessError):
        return None
    version, path = run.stdout.splitlines()[-2:]
    return Torch(python, version), path


def find(pythons):
    """The torches of these Pythons, or of the usual ones, each once, and a line for each Python without torch."""
    found, missing = {}, []
    for python in pythons or dict.fromkeys(filter(None, ["/usr/bin/python3", shutil.which("python3")])):
        here = torch_of(python)
        if here:
            found.setdefault(here[1], here[0])
        elif pythons:
            missing.append(f"PyTorch of {python}: not found, skipped; install python3-torch or pip install torch there")
    return list(found.values()), missing if found or missing else [NOT_FOUND]


@dataclasses.dataclass(frozen=True)
class Way:
    name: str
    arguments: tuple = ()
    least_major: int = 1  # the least major version of torch


@dataclasses.dataclass(frozen=True)
class Peer:
    """A script of benchmarks/peers that takes turns."""

    script: str
    ways: tuple
    arguments: tuple = ()
    ranks: int = 1


GPT_WAYS = (Way("eager"), Way("eager, fused AdamW", ("--fused",), 2),
            Way("compiled, fused AdamW", ("--compile", "--fused"), 2))
RESNET_WAYS = (Way("channels first", ("--layout=channels_first",)), Way("channels last", ("--layout=channels_last",)),
               Way("channels first, compiled", ("--layout=channels_first", "--compile"), 2),
               Way("channels last, compiled", ("--layout=channels_last", "--compile"), 2))
OPTIMIZER_WAYS = (Way("foreach", ("--form=foreach",)), Way("fused", ("--form=fused",), 2))
ONE_WAY = (Way("eager"),)
COMPILED = (Way("compiled", ("--compile",), 2),)


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def start(torch, peer, way, environment: Dict[str, str]) -> TurnTaker:
    """The ranks find each other by gloo's variables, which torchrun would set."""
    gloo = {"WORLD_SIZE": str(peer.ranks), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_port())}
    arguments = [torch.python, str(PEERS / peer.script), *peer.arguments, *way.arguments]
    commands = [Command(arguments, {**environment, **gloo, "RANK": str(rank)}) for rank in range(peer.ranks)]
    return TurnTaker(f"{torch.label}, {way.name},", commands, peer.ranks)


def seconds_of_trial(program, request, best, deadline):
    """Seconds of the second of two calls after the warm-up and compilation; stops early where it is far too slow."""
    seconds = None
    for call in range(4):
        seconds = program.ask(request, max(1.0, deadline - time.monotonic()))
        if call > 0 and best is not None and seconds > 3 * best:
            break
    return seconds


def fastest(torches: List[Torch], peer: Peer, request, environment, deadline):
    """Tries every variant with every torch. Returns the fastest one, still running, with its label, and the times of all. Failure where
    none works."""
    best, best_seconds, best_label, trials, output = None, None, "", [], ""
    try:
        for torch in torches:
            for way in peer.ways:
                if torch.major < way.least_major:
                    continue
                label = f"{torch.label}, {way.name}"
                if time.monotonic() > deadline:
                    trials.append({"way": label, "seconds": None, "why": "not tried: out of time"})
                    continue
                program = None
                try:
                    program = start(torch, peer, way, environment)
                    seconds = seconds_of_trial(program, request, best_seconds, deadline)
                except Failure as failure:
                    trials.append({"way": label, "seconds": None, "why": failure.what})
                    output = failure.output
                    if program:
                        program.close()
                    continue
                except BaseException:
                    if program:
                        program.close()
                    raise
                trials.append({"way": label, "seconds": seconds, "why": ""})
                if best is None or seconds < best_seconds:
                    best, program, best_seconds, best_label = program, best, seconds, label
                if program:
                    program.close()
    except BaseException:
        if best:
            best.close()
        raise
    if best is None:
        reasons = "; ".join(f"{trial['way']}: {trial['why']}" for trial in trials)
        raise Failure(f"no variant of PyTorch could be timed: {reasons}", output)
    return best, best_label, trials
