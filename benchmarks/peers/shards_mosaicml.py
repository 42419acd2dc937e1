"""Writes the samples of tar archives as MDS shards, or reads all of these once by mosaicml-streaming in one process: prints seconds and
what was read as JSON. StreamingDataset and LocalDataset both read; the faster one counts."""

import argparse
import json
import time

import streaming
from shards_webdataset import digest_of


def write(pattern, folder):
    import webdataset

    columns = {"key": "str", "jpg": "bytes", "cls": "bytes"}
    with streaming.MDSWriter(out=folder, columns=columns, size_limit=1 << 28) as writer:
        for sample in webdataset.WebDataset(pattern, shardshuffle=False):
            writer.write({"key": sample["__key__"], "jpg": sample["jpg"], "cls": sample["cls"]})


def seconds_of(samples):
    seen = []
    start = time.perf_counter()
    for sample in samples:
        seen.append((sample["key"], [(name, len(value)) for name, value in sample.items() if name != "key"]))
    return time.perf_counter() - start, seen


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder")
    parser.add_argument("--from-archives", help="write the samples of this pattern of archives to the folder")
    options = parser.parse_args()
    if options.from_archives:
        write(options.from_archives, options.folder)
        return
    streamed = streaming.StreamingDataset(local=options.folder, batch_size=1, shuffle=False)
    local = streaming.LocalDataset(options.folder)
    ways = {"StreamingDataset": seconds_of(streamed), "LocalDataset": seconds_of(local[index] for index in range(len(local)))}
    way, (seconds, seen) = min(ways.items(), key=lambda item: item[1][0])
    print(json.dumps({"seconds": seconds, "samples": len(seen), "digest": digest_of(seen), "version": f"{streaming.__version__}, {way}"}))


if __name__ == "__main__":
    main()
