"""Shows values of the library in gdb in a readable form.

    (gdb) source tools/gdb/trireme_printers.py
    (gdb) print x
    $1 = Tensor<float> [2, 3] = {1, 2, 3, 4, 5, 6}

You can put the `source` line into ~/.gdbinit. Elements are shown row by row, as many as `set print elements` allows. Elements in
a GPU's memory are not shown, since gdb can't read them.
"""

import struct

import gdb
import gdb.printing


def argument_names(value):
    """The template arguments of a value's type without their namespaces. Default arguments are left out."""
    names = []
    while True:
        try:
            names.append(str(value.type.strip_typedefs().template_argument(len(names))).replace("trireme::", ""))
        except RuntimeError:  # there are no more
            break
    while len(names) > 1 and names[-1] in ("Cpu", names[0]):
        names.pop()
    return ", ".join(names)


def text_of(shape):
    return "[" + ", ".join(str(int(shape["dims_"]["_M_elems"][dim])) for dim in range(int(shape["size_"]))) + "]"


def shape_of(tensor):
    return text_of(tensor["shape_"]) if int(tensor["storage_"]["_M_ptr"]) != 0 else "undefined"


def elements_of(tensor):
    """The elements of a tensor in the host's memory, with their names for gdb."""
    if str(tensor.type.strip_typedefs().template_argument(1)) == "trireme::Cpu":
        for place in range(int(tensor["numel_"])):
            yield f"[{place}]", tensor["data_"][place]


class ShapePrinter:
    """[2, 3]"""

    def __init__(self, value):
        self.value = value

    def to_string(self):
        return text_of(self.value)


class TensorPrinter:
    """Tensor<float> [2, 3] = {1, 2, 3, 4, 5, 6}"""

    def __init__(self, value):
        self.value = value

    def to_string(self):
        return f"Tensor<{argument_names(self.value)}> {shape_of(self.value)}"

    def children(self):
        return elements_of(self.value)

    def display_hint(self):
        return "array"


class VariablePrinter:
    """Variable<float> [2, 3], constant = {1, 2, 3, 4, 5, 6}"""

    def __init__(self, value):
        self.value = value

    def to_string(self):
        kind = "has a gradient" if int(self.value["gradient_"]["slot_"]["_M_ptr"]) != 0 else "constant"
        return f"Variable<{argument_names(self.value)}> {shape_of(self.value['value_'])}, {kind}"

    def children(self):
        return elements_of(self.value["value_"])

    def display_hint(self):
        return "array"


class SmallFloatPrinter:
    """The number that a 16-bit or an 8-bit float represents."""

    def __init__(self, value):
        self.value = value

    def to_string(self):
        bits = int(self.value["bits_"])
        name = str(self.value.type.strip_typedefs())
        if "bfloat16" in name:
            number = struct.unpack("<f", struct.pack("<I", bits << 16))[0]
        elif "float16" in name:
            number = struct.unpack("<e", struct.pack("<H", bits))[0]
        elif "e5m2" in name:  # the upper half of a float16
            number = struct.unpack("<e", struct.pack("<H", bits << 8))[0]
        else:  # e4m3 has no infinities: the highest exponent also holds numbers, and one NaN
            exponent, fraction = bits >> 3 & 15, bits & 7
            number = (fraction * 2.0 ** -9 if exponent == 0 else float("nan") if bits & 127 == 127 else
                      (8 + fraction) * 2.0 ** (exponent - 10))
            number = -number if bits & 128 else number
        return f"{number:.9g}"


def printers():
    collection = gdb.printing.RegexpCollectionPrettyPrinter("trireme")
    collection.add_printer("Shape", "^trireme::Shape$", ShapePrinter)
    collection.add_printer("Tensor", "^trireme::Tensor<.*>$", TensorPrinter)
    collection.add_printer("Variable", "^trireme::Variable<.*>$", VariablePrinter)
    collection.add_printer("small floats", "^trireme::(bfloat16|float16|float8_e4m3|float8_e5m2)$", SmallFloatPrinter)
    return collection


gdb.printing.register_pretty_printer(gdb.current_objfile(), printers(), replace=True)
