"""Makes tar archives, or reads all their samples once by webdataset in one process: prints seconds and what was read as JSON."""

import argparse
import json
import random
import time

import braceexpand
import webdataset


def make(pattern, samples, size):
    shards = list(braceexpand.braceexpand(pattern))
    draw = random.Random(1)
    for number, shard in enumerate(shards):
        with webdataset.TarWriter(shard) as archive:
            for sample in range(number * samples // len(shards), (number + 1) * samples // len(shards)):
                archive.write({"__key__": f"sample/{sample:08d}", "jpg": draw.randbytes(draw.randint(size // 2, size * 3 // 2)),
                               "cls": str(sample % 1000).encode()})


def digest_of(samples):
    digest = 0xCBF29CE484222325
    for key, sizes in samples:
        for byte in (key + "".join(f" {name}={size}" for name, size in sizes)).encode():
            digest = (digest ^ byte) * 0x100000001B3 % 2**64
    return digest


def read(pattern):
    seen = []
    start = time.perf_counter()
    for sample in webdataset.WebDataset(pattern, shardshuffle=False):
        seen.append((sample["__key__"], [(name, len(value)) for name, value in sample.items() if not name.startswith("__")]))
    seconds = time.perf_counter() - start
    print(json.dumps({"seconds": seconds, "samples": len(seen), "digest": digest_of(seen), "version": webdataset.__version__}))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("pattern")
    parser.add_argument("--make", type=int, help="make archives of so many samples")
    parser.add_argument("--bytes", type=int, default=10000, help="of a sample that is made, on average")
    options = parser.parse_args()
    if options.make:
        make(options.pattern, options.make, options.bytes)
    else:
        read(options.pattern)


if __name__ == "__main__":
    main()
