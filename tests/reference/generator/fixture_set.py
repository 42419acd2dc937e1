"""A folder of fixtures with its index.json."""

import json
import zlib

import numpy
import torch

DTYPES = {
    torch.float64: "F64",
    torch.float32: "F32",
    torch.float16: "F16",
    torch.bfloat16: "BF16",
    torch.int64: "I64",
    torch.int32: "I32",
    torch.uint8: "U8",
}
RTOL = 1e-5


def bytes_of(tensor):
    """The elements, little-endian."""
    tensor = tensor.detach().contiguous()
    if tensor.dtype == torch.bfloat16:
        tensor = tensor.view(torch.int16)
    values = tensor.numpy()
    return values.astype(values.dtype.newbyteorder("<")).tobytes()


def safetensors(tensors, metadata=None):
    """The content of a safetensors file."""
    header = {"__metadata__": metadata} if metadata else {}
    data = b""
    for name, tensor in tensors.items():
        content = bytes_of(tensor)
        header[name] = {
            "dtype": DTYPES[tensor.dtype],
            "shape": list(tensor.shape),
            "data_offsets": [len(data), len(data) + len(content)],
        }
        data += content
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    return len(text).to_bytes(8, "little") + text + data


def described(tensors):
    return {name: {"dtype": DTYPES[tensor.dtype], "shape": list(tensor.shape)} for name, tensor in tensors.items()}


def rounded_up(value):
    """A tolerance, to two digits."""
    return float(f"{value * 1.05:.1e}")


def bound(exact, approximate, floor=0.0):
    """The tolerance of a computation in float32: 1e-6 of the largest value, and 16 times PyTorch's error."""
    exact = exact.double()
    finite = torch.isfinite(exact)
    largest = exact[finite].abs().max().item() if finite.any() else 0.0
    error = (exact - approximate.double())[finite].abs().max().item() if finite.any() else 0.0
    return rounded_up(max(1e-6 * largest + 16 * error, floor, 1e-7))


class Random:
    """Random numbers that depend only on the set's seed and a name."""

    def __init__(self, seed, name):
        self.generator = torch.Generator().manual_seed(zlib.crc32(f"{seed}/{name}".encode()))

    def normal(self, *shape, deviation=1.0):
        return torch.randn(shape, generator=self.generator) * deviation

    def uniform(self, *shape, low=0.0, high=1.0):
        return torch.rand(*shape, generator=self.generator) * (high - low) + low

    def integers(self, *shape, below, dtype=torch.int64):
        return torch.randint(below, shape, generator=self.generator).to(dtype)


class FixtureSet:
    def __init__(self, folder, seed):
        self.folder = folder
        self.seed = seed
        self.entries = []
        self.others = []
        self.num_bytes = 0

    def random(self, name):
        return Random(self.seed, name)

    def write(self, path, content):
        file = self.folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        if isinstance(content, str):
            content = content.encode()
        file.write_bytes(content)
        self.num_bytes += len(content)

    def write_json(self, path, value):
        self.write(path, json.dumps(value, indent=1) + "\n")

    def add(self, name, kind, tensors, roles=None, **fields):
        """Writes name.safetensors and adds it to the index; roles has more about each tensor."""
        self.write(f"{name}.safetensors", safetensors(tensors))
        entries = described(tensors)
        for key, role in (roles or {}).items():
            entries[key] |= role
        self.entries.append({"id": name, "file": f"{name}.safetensors", "kind": kind, **fields, "tensors": entries})

    def add_json(self, name, kind, value, **fields):
        self.write_json(f"{name}.json", value)
        self.entries.append({"id": name, "file": f"{name}.json", "kind": kind, **fields})

    def add_other(self, name, file, kind, notes):
        self.others.append({"id": name, "file": file, "kind": kind, "notes": notes})

    def write_index(self):
        index = {
            "schema": 1,
            "set": "trireme",
            "made_with": {"torch": torch.__version__.split("+")[0], "numpy": numpy.__version__, "seed": self.seed},
            "fixtures": self.entries,
            "other": self.others,
        }
        lines = json.dumps(index)
        for kind in ("fixtures", "other"):  # a line for each entry, so that diffs are readable
            lines = lines.replace(f'"{kind}": [', f'\n"{kind}": [\n ')
        self.write("index.json", lines.replace('}, {"id": ', '},\n {"id": ') + "\n")
