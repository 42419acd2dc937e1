"""Reads all samples of tar archives once by spdl.io.iter_tarfile in one process: prints seconds and what was read as JSON.

It reads files and archives in memory, here mapped; the faster way counts. It knows no samples: files with one key are put together here.
"""

import argparse
import importlib.metadata
import mmap

import braceexpand
import spdl.io
from shards_webdataset import tell, timed


def members_of_files(shards):
    for shard in shards:
        with open(shard, "rb") as file:
            yield from spdl.io.iter_tarfile(file)


def members_of_memory(shards):
    for shard in shards:
        with open(shard, "rb") as file:
            archive = memoryview(mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ))
        for name, content in spdl.io.iter_tarfile(archive):
            yield name, bytes(content)


def samples_of(members):
    key, fields = None, []
    for name, content in members:
        dot = name.find(".", name.rfind("/") + 1)
        if name[:dot] != key:
            if fields:
                yield key, fields
            key, fields = name[:dot], []
        fields.append((name[dot + 1 :].lower(), content))
    if fields:
        yield key, fields


def read(members):
    return timed((key, [(name, len(content)) for name, content in fields]) for key, fields in samples_of(members))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("pattern")
    options = parser.parse_args()
    shards = list(braceexpand.braceexpand(options.pattern))
    ways = {"of files": read(members_of_files(shards)), "of mapped memory": read(members_of_memory(shards))}
    way = min(ways, key=lambda name: ways[name][1])
    tell(ways[way], f"{importlib.metadata.version('spdl')}, {way}")


if __name__ == "__main__":
    main()
