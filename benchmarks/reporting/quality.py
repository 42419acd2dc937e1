"""Seconds to a given quality, read from MLPerf's log lines."""

import json
import os
import pathlib
import time

from .processes import Failure, run_once

ROOT = pathlib.Path(__file__).resolve().parents[2]
PREFIX = ":::MLLOG "


def events_of(output):
    """The events of a log. A line that breaks the format is a Failure."""
    events = []
    for line in output.splitlines():
        if not line.startswith(PREFIX):
            continue
        try:
            event = json.loads(line[len(PREFIX):])
            events.append({key: event[key] for key in ("time_ms", "event_type", "key", "value", "metadata")})
        except (ValueError, KeyError, TypeError) as error:
            raise Failure(f"an MLLOG line cannot be read: {line}") from error
    return events


def quality_of(output):
    """Seconds, steps and the curve to the target. Failure where the log lacks one of them."""
    events = events_of(output)

    def first(key):
        for event in events:
            if event["key"] == key:
                return event
        raise Failure(f"the log has no {key}", output)

    start, stop = first("run_start"), first("run_stop")
    evaluations = [event for event in events if event["key"] == "eval_accuracy"]
    if not evaluations:
        raise Failure("the log has no evaluation", output)
    return {"benchmark": first("submission_benchmark")["value"],
            "status": stop["metadata"]["status"],
            "target": first("target_quality")["value"],
            "seed": first("seed")["value"],
            "global_batch_size": first("global_batch_size")["value"],
            "steps": evaluations[-1]["metadata"]["step"],
            "quality": evaluations[-1]["value"],
            "seconds": (stop["time_ms"] - start["time_ms"]) / 1000,
            "curve": [[(event["time_ms"] - start["time_ms"]) / 1000, event["value"]] for event in evaluations],
            "lines": [line for line in output.splitlines() if line.startswith(PREFIX)]}


def own_sources(folder):
    """The library's sources in one file, like the default text of scripts/demo."""
    text = folder / "sources.txt"
    files = sorted(str(path.relative_to(ROOT)) for part in ("include", "src") for path in (ROOT / part).rglob("*.[ch]pp"))
    text.write_bytes(b"".join((ROOT / name).read_bytes() for name in files))
    return text


def mnist_folder():
    """None where TRIREME_DATA names no folder with mnist/ in it."""
    folder = pathlib.Path(os.environ.get("TRIREME_DATA", "")) / "mnist"
    return folder if os.environ.get("TRIREME_DATA") and folder.is_dir() else None


def run_to_quality(comparison, context, deadline):
    command = context.command(comparison)
    note = ""
    if comparison.data == "text":
        text = context.text or own_sources(context.folder)
        command.arguments += ["--text", str(text)]
        note = f"{text.name}, {text.stat().st_size:,} bytes" if text.is_file() else str(text)
    else:
        command.arguments += ["--data", str(mnist_folder())]
    run = run_once(command, max(comparison.least_seconds, deadline - time.monotonic()), with_json=False)
    quality = quality_of(run.output)
    (context.folder / f"{quality['benchmark']}.mllog").write_text("\n".join(quality["lines"]) + "\n", encoding="utf-8")
    return {"rows": [], "notes": [note] if note else [], "trials": [], "memory": {}, "quality": quality}
