"""Parquet files of pyarrow, and the values of their rows."""

import io

import pyarrow
from pyarrow import parquet

FOLDER = "parquet"
COLUMNS = {
    "text": pyarrow.string(),
    "kind": pyarrow.dictionary(pyarrow.int8(), pyarrow.string()),
    "count": pyarrow.int64(),
    "small": pyarrow.uint8(),
    "flag": pyarrow.bool_(),
    "score": pyarrow.float64(),
    "half": pyarrow.float32(),
    "tokens": pyarrow.list_(pyarrow.uint16()),
    "embedding": pyarrow.list_(pyarrow.float32(), 3),
    "image": pyarrow.struct([("bytes", pyarrow.binary()), ("size", pyarrow.struct([("width", pyarrow.int32())]))]),
    "day": pyarrow.date32(),  # is not read
}


def row(number):
    return {
        "text": "größe " * (number % 4) + str(number),
        "kind": ["red", "green", "blue"][number % 3],
        "count": (-1) ** number * 3**number * 10**6,
        "small": 255 - number,
        "flag": number % 3 == 1,
        "score": number / 7,
        "half": number / 8,
        "tokens": [number * 1000 + token for token in range(number % 5)],
        "embedding": [number, 0.5, -number],
        "image": {"bytes": bytes(range(number)), "size": {"width": 100 * number}},
        "day": number,
    }


def with_nulls(number):
    return {name: None if (number + place) % 3 == 0 else value for place, (name, value) in enumerate(row(number).items())}


def shown(values):
    """As in JSON, fields of structs as columns of their own."""
    image = values.pop("image") or {"bytes": None, "size": None}
    values.pop("day")
    values["image.bytes"] = None if image["bytes"] is None else image["bytes"].hex()
    values["image.size.width"] = None if image["size"] is None else image["size"]["width"]
    return values


def write(fixtures):
    files = {
        "groups": ([row(number) for number in range(11)], {"row_group_size": 4}),
        "nulls": (
            [with_nulls(number) for number in range(9)],
            {"row_group_size": 5, "compression": "zstd", "data_page_version": "2.0", "use_dictionary": False},
        ),
        "more": ([row(number) for number in range(20, 25)], {"compression": "gzip"}),
        "none": ([], {}),
    }
    expected = {}
    for name, (rows, options) in files.items():
        columns = [pyarrow.array([one[column] for one in rows], type=kind) for column, kind in COLUMNS.items()]
        file = io.BytesIO()
        parquet.write_table(pyarrow.table(columns, names=list(COLUMNS)), file, **options)
        fixtures.write(f"{FOLDER}/{name}.parquet", file.getvalue())
        expected[name] = [shown(one) for one in rows]
    fixtures.write_json(f"{FOLDER}/expected.json", expected)
    fixtures.add_other(FOLDER, f"{FOLDER}/expected.json", "parquet_rows", f"files of pyarrow {pyarrow.__version__}, and their rows")
