"""Describes this machine, its libraries and its programs, for the head of a page."""

import os
import pathlib
import platform
import re
import subprocess


def output_of(*command):
    """The first line of the output; "" where the command fails."""
    try:
        lines = subprocess.run(command, capture_output=True, text=True, timeout=30, check=True).stdout.splitlines()
        return lines[0].strip() if lines else ""
    except (OSError, subprocess.SubprocessError):
        return ""


def read(path):
    try:
        return pathlib.Path(path).read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""


def processor():
    text = read("/proc/cpuinfo")

    def value(key):
        match = re.search(rf"^{key}\s*:\s*(.*)$", text, re.MULTILINE)
        return match.group(1) if match else ""

    flags = value("flags").split()
    vectors = [flag for flag in ("avx2", "avx512f", "avx512_bf16", "amx_tile", "amx_bf16") if flag in flags]
    model = " ".join(filter(None, [value("model name"), f"family {value('cpu family')} model {value('model')}"]))
    return model, " ".join(vectors) or "no AVX2"


def steal():
    """Total processor time so far, and the part that other virtual machines took."""
    fields = [int(word) for word in read("/proc/stat").split("\n", maxsplit=1)[0].split()[1:]]
    return (sum(fields[:8]), fields[7]) if len(fields) >= 8 else (0, 0)


def linked(program, library):
    """The version in the name of a shared library that a program loads: libdnnl.so.2.6 -> 2.6."""
    try:
        text = subprocess.run(["ldd", str(program)], capture_output=True, text=True, timeout=30, check=False).stdout
    except (OSError, subprocess.SubprocessError):
        return ""
    match = re.search(rf"{library}\S* => (\S+)", text)
    return re.sub(r"^.*\.so\.?", "", os.path.realpath(match.group(1))) if match else ""


def compiler_of(programs):
    for folder in (programs, *list(programs.parents)[:2]):
        match = re.search(r"^CMAKE_CXX_COMPILER:\w+=(.*)$", read(folder / "CMakeCache.txt"), re.MULTILINE)
        if match:
            return output_of(match.group(1), "--version")
    return ""


def commit_of(folder):
    commit = output_of("git", "-C", str(folder), "rev-parse", "--short=12", "HEAD")
    changed = output_of("git", "-C", str(folder), "status", "--porcelain", "--untracked-files=no")
    return commit + (" and changes" if commit and changed else "")


def describe(programs, root, torches, isa):
    """Pairs of (name, value); unknown ones are left out."""
    model, vectors = processor()
    system = re.search(r'^PRETTY_NAME="?(.*?)"?$', read("/etc/os-release"), re.MULTILINE)
    kibibytes = re.search(r"^MemTotal:\s*(\d+)", read("/proc/meminfo"), re.MULTILINE)
    gpt = programs / "gpt_step"
    facts = [
        ("processor", f"{model}, {os.cpu_count()} cores, {vectors}"),
        ("instruction set", isa or "the best there is"),
        ("memory", f"{int(kibibytes.group(1)) / 2**20:.0f} GiB" if kibibytes else ""),
        ("system", f"{system.group(1) if system else ''}, {platform.system()} {platform.release()}"),
        ("compiler", compiler_of(programs)),
        ("oneDNN", linked(gpt, "libdnnl")),
        ("MPI", output_of("mpirun", "--version")),
        ("peers", ", ".join(f"{torch.label} of {torch.python}" for torch in torches) or "no PyTorch"),
        ("Python", platform.python_version()),
        ("commit", commit_of(root)),
        ("load before the first run", f"{os.getloadavg()[0]:.2f}, average of a minute; 0 is quiet"),
    ]
    return [[name, value] for name, value in facts if value]
