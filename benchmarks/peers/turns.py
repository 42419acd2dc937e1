"""How a peer takes turns with other programs: the Python side of measurement/turns.hpp."""

import json
import os


def take_turns(folder, measures):
    """`measures`: a function for each name that benchmarks/report may ask for; rank 0 answers with its result."""
    rank = int(os.environ.get("RANK", 0))
    with open(f"{folder}/request.{rank}", encoding="utf-8") as requests:
        answers = open(f"{folder}/answers", "w", encoding="utf-8") if rank == 0 else None
        for line in requests:
            value = measures[line.strip()]()
            if answers:
                print(json.dumps({"value": value}), file=answers, flush=True)
