"""Encodes a text, then again and again, by tokenizers or gigatoken, on one thread: prints megabytes a second of the
processor's time as JSON. Python's lists of the tokens are not made."""

import importlib.metadata
import json
import os
import pathlib
import statistics
import sys
import time

os.environ["TOKENIZERS_PARALLELISM"] = "false"
os.environ["RAYON_NUM_THREADS"] = "1"

AGAIN = 7


def main():
    peer, tokenizer, path = sys.argv[1:]
    text = pathlib.Path(path).read_text(encoding="utf-8")
    if peer == "tokenizers":
        import tokenizers

        made = tokenizers.Tokenizer.from_file(tokenizer)

        def encode():
            return made.encode(text)

        def count(encoded):
            return len(encoded.ids)

    else:
        import gigatoken

        made = gigatoken.Tokenizer(tokenizer)

        def encode():
            return made.encode(text)

        count = len

    def seconds():
        start = time.process_time()
        encoded = encode()
        end = time.process_time()
        del encoded
        return end - start

    megabytes = len(text.encode()) * 1e-6
    figures = {"first_megabytes_per_second": megabytes / seconds()}
    figures["again_megabytes_per_second"] = megabytes / statistics.median(seconds() for _ in range(AGAIN))
    print(json.dumps(figures | {"tokens": count(encode()), "version": importlib.metadata.version(peer)}))


if __name__ == "__main__":
    main()
