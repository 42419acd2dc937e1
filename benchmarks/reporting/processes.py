"""Starts programs, asks them for measurements or reads their files, and ends them. Errors are a Failure with their output."""

import dataclasses
import json
import os
import pathlib
import select
import signal
import subprocess
import tempfile
import time
from typing import Dict, List

SHOWN_LINES = 30  # of a failed program's output


class Failure(Exception):
    def __init__(self, what, output=""):
        super().__init__(what)
        self.what, self.output = what, output


@dataclasses.dataclass
class Command:
    """One process to start; `environment` is added to this process's environment."""

    arguments: List[str]
    environment: Dict[str, str] = dataclasses.field(default_factory=dict)


def environment_for(isa):
    """For all programs: one thread a rank, mpirun as root, and the same instruction set for the library, oneDNN and PyTorch."""
    common = {"OMP_NUM_THREADS": "1", "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
              "OMPI_MCA_rmaps_base_oversubscribe": "1", "TORCHINDUCTOR_COMPILE_THREADS": "1"}
    if isa:
        common["TRIREME_ISA"] = isa
    if isa == "avx2":
        common.update(DNNL_MAX_CPU_ISA="AVX2", ONEDNN_MAX_CPU_ISA="AVX2", ATEN_CPU_CAPABILITY="avx2",
                      MKL_ENABLE_INSTRUCTIONS="AVX2")
    return common


def under_mpirun(ranks, arguments):
    return ["mpirun", "-n", str(ranks), *arguments] if ranks > 1 else list(arguments)


def end(process):
    """Asks the process to end, upon which mpirun ends its ranks; kills it if it does not."""
    if process.poll() is not None:
        return
    process.terminate()
    try:
        process.wait(5)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def start(command, log):
    try:
        return subprocess.Popen([str(word) for word in command.arguments], stdin=subprocess.DEVNULL, stdout=log,
                                stderr=subprocess.STDOUT, start_new_session=True, env={**os.environ, **command.environment})
    except OSError as error:
        raise Failure(f"{command.arguments[0]} cannot be started: {error.strerror}") from error


def last_lines(log):
    log.flush()
    lines = pathlib.Path(log.name).read_text(encoding="utf-8", errors="replace").splitlines()
    left_out = [f"[{len(lines) - SHOWN_LINES} lines before]"] if len(lines) > SHOWN_LINES else []
    return "\n".join(left_out + lines[-SHOWN_LINES:])


def how_it_ended(code):
    return f"was ended by {signal.Signals(-code).name}" if code < 0 else f"ended with exit code {code}"


@dataclasses.dataclass
class Run:
    figures: object  # from the file of --json; None without it
    output: str
    peak_bytes: int  # peak memory of the largest of its processes
    seconds: float


def run_once(command, limit_seconds, with_json=True):
    """Runs a program to its end."""
    with tempfile.TemporaryDirectory() as folder:
        result = pathlib.Path(folder) / "figures.json"
        log_path = pathlib.Path(folder) / "log"
        if with_json:
            command = Command([*command.arguments, "--json", result], command.environment)
        with open(log_path, "w", encoding="utf-8") as log:
            begin = time.monotonic()
            process = start(command, log)
            try:
                usage = wait(process, begin + limit_seconds)
            except BaseException as error:
                end(process)
                if isinstance(error, Failure):
                    error.output = last_lines(log)
                raise
            seconds = time.monotonic() - begin
            if process.returncode != 0:
                raise Failure(how_it_ended(process.returncode), last_lines(log))
            if with_json and not result.exists():
                raise Failure("wrote no figures", last_lines(log))
        output = log_path.read_text(encoding="utf-8", errors="replace")
        figures = json.loads(result.read_text(encoding="utf-8")) if with_json else None
        return Run(figures, output, usage.ru_maxrss * 1024, seconds)


def wait(process, deadline):
    """The resources that a process and its children have used; sets its return code."""
    while True:
        pid, status, usage = os.wait4(process.pid, os.WNOHANG)
        if pid != 0:
            process.returncode = -os.WTERMSIG(status) if os.WIFSIGNALED(status) else os.WEXITSTATUS(status)
            return usage
        if time.monotonic() > deadline:
            raise Failure("did not end in time")
        time.sleep(0.01)


class TurnTaker:
    """A program, of one or several ranks, that sleeps until it is asked for a measurement: see measurement/turns.hpp."""

    def __init__(self, name, commands, ranks):
        self.name = name
        self._folder = tempfile.TemporaryDirectory()
        folder = pathlib.Path(self._folder.name)
        self._requests, self._pending, self._processes = [], b"", []
        for rank in range(ranks):
            os.mkfifo(folder / f"request.{rank}")
            self._requests.append(os.open(folder / f"request.{rank}", os.O_RDWR))
        os.mkfifo(folder / "answers")
        self._answers = os.open(folder / "answers", os.O_RDWR | os.O_NONBLOCK)
        self._log = open(folder / "log", "w", encoding="utf-8")
        try:
            for command in commands:
                turns = Command([*command.arguments, f"--turns={folder}"], command.environment)
                self._processes.append(start(turns, self._log))
        except Failure:
            self.close()
            raise

    def ask(self, what, limit_seconds=120.0):
        """The program's answer, usually seconds; None where this machine can't measure it."""
        for request in self._requests:
            os.write(request, f"{what}\n".encode())
        deadline = time.monotonic() + limit_seconds
        while b"\n" not in self._pending:
            if select.select([self._answers], [], [], 0.1)[0]:
                self._pending += os.read(self._answers, 4096)
                continue
            ended = [process.poll() for process in self._processes if process.poll() is not None]
            if ended:
                raise self._failure(f"{how_it_ended(ended[0])} when asked for \"{what}\"")
            if time.monotonic() > deadline:
                raise self._failure(f"did not answer \"{what}\" within {limit_seconds:.0f} s")
        answer, _, self._pending = self._pending.partition(b"\n")
        return json.loads(answer)["value"]

    def _failure(self, what):
        return Failure(f"{self.name} {what}", last_lines(self._log))

    def close(self):
        """Closing the pipes ends the program."""
        for descriptor in [*self._requests, self._answers]:
            os.close(descriptor)
        deadline = time.monotonic() + 10
        while any(process.poll() is None for process in self._processes) and time.monotonic() < deadline:
            time.sleep(0.02)
        for process in self._processes:
            end(process)
        self._log.close()
        self._folder.cleanup()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()
