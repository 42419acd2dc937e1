"""Checks that trireme.hpp includes, directly or not, every public header of the rooms that programs use."""

import pathlib
import re
import unittest

INCLUDE = pathlib.Path(__file__).resolve().parents[2] / "include"
ROOMS = ("amp", "autograd", "checkpoint", "data", "mesh", "models", "monitor", "nn", "onnx", "optim", "parallel", "tensor", "trainer")
LEFT_OUT = {"trireme/nn/weights/weights_format.hpp", "trireme/optim/diverged.hpp"}  # only for authors of weight formats or optimizers
INCLUDED = re.compile(r'^#include [<"](trireme/[^>"]+)[>"]', re.MULTILINE)


def reached_from(header):
    reached, left = set(), [header]
    while left:
        name = left.pop()
        if name not in reached:
            reached.add(name)
            left += INCLUDED.findall((INCLUDE / name).read_text(encoding="utf-8"))
    return reached


class AllHeaders(unittest.TestCase):
    def test_trireme_hpp_reaches_them(self):
        public = {str(path.relative_to(INCLUDE)) for room in ROOMS for path in (INCLUDE / "trireme" / room).rglob("*.hpp")}
        public = {name for name in public if not name.endswith("-inl.hpp")}
        self.assertEqual(sorted(public - reached_from("trireme/trireme.hpp") - LEFT_OUT), [])

    def test_what_is_left_out_is_there(self):
        for name in LEFT_OUT:
            self.assertTrue((INCLUDE / name).is_file(), name)


if __name__ == "__main__":
    unittest.main()
