"""Writes the samples of tar archives as MDS shards, or reads all of these once by mosaicml-streaming in one process: prints seconds and
what was read as JSON. StreamingDataset and LocalDataset both read; the faster one counts."""

import argparse

import streaming
from shards_webdataset import tell, timed


def write(pattern, folder):
    import webdataset

    columns = {"key": "str", "jpg": "bytes", "cls": "bytes"}
    with streaming.MDSWriter(out=folder, columns=columns, size_limit=1 << 28) as writer:
        for sample in webdataset.WebDataset(pattern, shardshuffle=False):
            writer.write({"key": sample["__key__"], "jpg": sample["jpg"], "cls": sample["cls"]})


def read(samples):
    return timed((sample["key"], [(name, len(value)) for name, value in sample.items() if name != "key"]) for sample in samples)


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
    ways = {"StreamingDataset": read(streamed), "LocalDataset": read(local[index] for index in range(len(local)))}
    way = min(ways, key=lambda name: ways[name][1])
    tell(ways[way], f"{streaming.__version__}, {way}")


if __name__ == "__main__":
    main()
