"""Reads the file that safetensors_python_test.cpp wrote, with the safetensors package of Hugging Face."""

import sys

import safetensors

ITEM_BYTES = {
    "BOOL": 1, "U8": 1, "I8": 1, "F8_E4M3": 1, "F8_E5M2": 1, "U16": 2, "I16": 2, "F16": 2, "BF16": 2,
    "U32": 4, "I32": 4, "F32": 4, "U64": 8, "I64": 8, "F64": 8,
}

path = sys.argv[1]
with open(path, "rb") as file:
    tensors = dict(safetensors.deserialize(file.read()))
expected = {name: ([2, 3], name, 6 * size) for name, size in ITEM_BYTES.items()}
expected["scalar \"\\é"] = ([], "F32", 4)
expected["empty"] = ([0, 4], "F32", 0)
assert tensors.keys() == expected.keys(), tensors.keys() ^ expected.keys()
for name, (shape, dtype, num_bytes) in expected.items():
    tensor = tensors[name]
    assert list(tensor["shape"]) == shape, (name, tensor["shape"])
    assert tensor["dtype"] == dtype, (name, tensor["dtype"])
    assert bytes(tensor["data"]) == bytes(range(num_bytes)), name
with safetensors.safe_open(path, framework="np") as file:
    assert file.metadata() == {"format": "pt", "a \"key\"": "a\nvalue"}, file.metadata()
