"""Encodes a text once by tokenizers or gigatoken, on one thread: prints megabytes a second and the number of tokens as JSON."""

import json
import os
import pathlib
import sys
import time

os.environ["TOKENIZERS_PARALLELISM"] = "false"
os.environ["RAYON_NUM_THREADS"] = "1"


def main():
    peer, tokenizer, path = sys.argv[1:]
    text = pathlib.Path(path).read_text(encoding="utf-8")
    if peer == "tokenizers":
        import tokenizers

        made = tokenizers.Tokenizer.from_file(tokenizer)

        def encode():
            return len(made.encode(text).ids)

    else:
        import gigatoken

        made = gigatoken.Tokenizer(tokenizer)

        def encode():
            return len(made.encode(text))

    start = time.perf_counter()
    tokens = encode()
    seconds = time.perf_counter() - start
    print(json.dumps({"megabytes_per_second": len(text.encode()) * 1e-6 / seconds, "tokens": tokens}))


if __name__ == "__main__":
    main()
