"""Valid and invalid safetensors files, with the expected result of a reader for each."""

import json

FLOAT = {"dtype": "F32", "shape": [3], "data_offsets": [0, 12]}
THREE = b"\x00\x00\x80?\x00\x00\x00@\x00\x00@\xc0"  # 1, 2, -3


def file_of(header, data=b"", padding=b""):
    text = header if isinstance(header, bytes) else json.dumps(header, separators=(",", ":")).encode()
    text += padding
    return len(text).to_bytes(8, "little") + text + data


def changed(**fields):
    return {"v": FLOAT | fields}


def accepted():
    values = {"v": {"shape": [3], "values": [1, 2, -3]}}
    byte = {"dtype": "U8", "shape": [1, 1], "data_offsets": [0, 1]}
    yield "plain", file_of({"v": FLOAT}, THREE), "one tensor", values
    yield "metadata_and_spaces", file_of(
        {"__metadata__": {"by": "hand"}, "v": FLOAT}, THREE, b"     "
    ), "metadata, header padded with spaces", values
    yield "scalar", file_of(
        {"s": {"dtype": "I16", "shape": [], "data_offsets": [0, 2]}}, b"\xfe\xff"
    ), "shape [] has one element", {"s": {"shape": [], "values": [-2]}}
    yield "no_elements", file_of(
        {"n": {"dtype": "F64", "shape": [2, 0, 3], "data_offsets": [0, 0]}, "u": byte}, b"\x07"
    ), "a dim of 0", {"n": {"shape": [2, 0, 3], "values": []}, "u": {"shape": [1, 1], "values": [7]}}
    yield "last_first", file_of(
        {"v": FLOAT | {"data_offsets": [1, 13]}, "u": byte}, b"\x05" + THREE
    ), "the header's order is not that of the data", {"v": values["v"], "u": {"shape": [1, 1], "values": [5]}}
    yield "nothing", file_of({}), "no tensors", {}


def refused():
    plain = file_of({"v": FLOAT}, THREE)
    yield "no_bytes", b"", "an empty file"
    yield "five_bytes", plain[:5], "the length of the header is cut"
    yield "length_beyond_file", (len(plain) * 3).to_bytes(8, "little") + plain[8:], "the header is longer than the file"
    yield "length_wraps", b"\xff" * 8 + plain[8:], "the header's length plus 8 wraps around"
    yield "data_cut", plain[:-1], "the last byte is missing"
    yield "data_left", plain + b"\x00", "a byte after the last tensor"
    yield "gap", file_of({"v": FLOAT | {"data_offsets": [4, 16]}}, b"\x00" * 4 + THREE), "bytes that belong to no tensor"
    yield "shared_bytes", file_of(
        {"v": FLOAT, "w": FLOAT | {"shape": [2], "data_offsets": [8, 16]}}, THREE + b"\x00" * 4
    ), "two tensors share bytes"
    yield "shape_too_large", file_of(changed(shape=[5]), THREE), "the shape needs more bytes than the offsets give"
    yield "offsets_backwards", file_of(changed(data_offsets=[12, 0]), THREE), "begin is after end"
    yield "dtype_unknown", file_of(changed(dtype="F31"), THREE), "there is no such dtype"
    yield "dtype_missing", file_of({"v": {"shape": [3], "data_offsets": [0, 12]}}, THREE), "no dtype"
    yield "json_cut", file_of(json.dumps({"v": FLOAT}).encode()[:-1], THREE), "the header's JSON is cut"
    yield "json_list", file_of(b'["v"]', THREE), "the header is no object"
    yield "utf8_broken", file_of(
        b'{"\xc3\x28":{"dtype":"F32","shape":[3],"data_offsets":[0,12]}}', THREE
    ), "the header is no UTF-8"
    yield "shape_wraps", file_of(changed(shape=[2**32, 2**32, 3]), THREE), "the product of the dims wraps around"
    yield "dim_negative", file_of(changed(shape=[-3]), THREE), "a dim below 0"
    yield "metadata_number", file_of({"__metadata__": {"by": 1}, "v": FLOAT}, THREE), "metadata must be text"


def write(fixtures):
    folder = "safetensors_samples"
    samples = []
    for name, content, why, tensors in accepted():
        fixtures.write(f"{folder}/ok_{name}.safetensors", content)
        samples.append({"file": f"ok_{name}.safetensors", "expect": "accept", "why": why, "tensors": tensors})
    for name, content, why in refused():
        fixtures.write(f"{folder}/bad_{name}.safetensors", content)
        samples.append({"file": f"bad_{name}.safetensors", "expect": "reject", "why": why})
    fixtures.write_json(f"{folder}/expected.json", {"samples": samples})
    fixtures.add_other(
        folder, f"{folder}/expected.json", "accept_reject", "right and wrong files, and what a reader must say to each"
    )
