"""Prints values of a small program in gdb, with tools/gdb/trireme_printers.py."""

import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
PRINTERS = ROOT / "tools/gdb/trireme_printers.py"
SOURCES = ("core/error.cpp", "core/shape.cpp", "device/available_memory.cpp", "device/caching_memory.cpp",
           "device/control_groups.cpp", "device/memory.cpp", "device/taken_blocks.cpp")
SKIPPED = 77

PROGRAM = """
#include "trireme/autograd/variable.hpp"
#include "trireme/core/bfloat16.hpp"
#include "trireme/core/float16.hpp"
#include "trireme/core/float8.hpp"

using namespace trireme;

[[gnu::noinline]] void stop_here() { asm volatile(""); }

int main() {
  const Shape shape{2, 3};
  const Shape scalar;
  const auto x = Tensor<float>::from({2, 3}, {1, 2, 3, 4, 5, 6.5F});
  const Tensor<std::int64_t> row = Tensor<std::int64_t>::from({4}, {1, 2, 3, 4}).narrow(1, 2);
  const Tensor<float> undefined;
  const auto half = Tensor<bfloat16>::from({3}, {bfloat16(1.5F), bfloat16(-2), bfloat16(0)});
  const auto ieee = Tensor<float16>::from({2}, {float16(0.1F), float16(65504)});
  const auto e4m3 = Tensor<float8_e4m3>::from({3}, {float8_e4m3(448), float8_e4m3(-0.015625F), float8_e4m3(0.001953125F)});
  const auto e5m2 = Tensor<float8_e5m2>::from({1}, {float8_e5m2(57344)});
  const Tensor<float>& reference = x;
  const Variable<float> constant(x);
  using Slot = Gradient<float>::Slot;  // where it lies does not matter: nothing is contributed
  const std::shared_ptr<Slot> slot(std::shared_ptr<void>(), reinterpret_cast<Slot*>(&stop_here));
  const Variable<bfloat16, Cpu, float> weight(half, Gradient<float>(slot));
  const Variable<float> nothing;
  stop_here();
  return static_cast<int>(shape.size() + scalar.size() + row.numel() + undefined.numel() + ieee.numel() + e4m3.numel() +
                          e5m2.numel() + reference.numel() + constant.shape().size() + nothing.shape().size()) * 0;
}
"""

EXPECTED = {
    "shape": "[2, 3]",
    "scalar": "[]",
    "x": "Tensor<float> [2, 3] = {1, 2, 3, 4, 5, 6.5}",
    "row": "Tensor<long> [2] = {2, 3}",
    "undefined": "Tensor<float> undefined",
    "half": "Tensor<bfloat16> [3] = {1.5, -2, 0}",
    "half.data_[0]": "1.5",
    "ieee": "Tensor<float16> [2] = {0.0999755859, 65504}",
    "e4m3": "Tensor<float8_e4m3> [3] = {448, -0.015625, 0.001953125}",
    "e5m2": "Tensor<float8_e5m2> [1] = {57344}",
    "reference": "Tensor<float> [2, 3] = {1, 2, 3, 4, 5, 6.5}",
    "constant": "Variable<float> [2, 3], constant = {1, 2, 3, 4, 5, 6.5}",
    "weight": "Variable<bfloat16, Cpu, float> [3], has a gradient = {1.5, -2, 0}",
    "nothing": "Variable<float> undefined, constant",
}


def compile_program(folder):
    source = folder / "values.cpp"
    source.write_text(PROGRAM)
    # These few files call other files of the library, but the program does not use those calls: the linker drops them.
    subprocess.run([os.environ.get("CXX", "c++"), "-std=c++20", "-g", "-O0", "-ffunction-sections", f"-I{ROOT}/include", f"-I{ROOT}/src",
                    source, *(ROOT / "src" / name for name in SOURCES), "-Wl,--gc-sections", "-lfmt", "-pthread",
                    "-o", folder / "values"], check=True)
    return folder / "values"


class GdbPrinters(unittest.TestCase):
    def test_values(self):
        with tempfile.TemporaryDirectory() as name:
            program = compile_program(pathlib.Path(name))
            commands = [f"source {PRINTERS}", "break stop_here", "run", "up"]
            for expression in EXPECTED:
                commands += [f"echo {expression}:", f"output {expression}", "echo \\n"]
            commands += ["set print elements 2", "echo few:", "output x", "echo \\n"]
            result = subprocess.run(["gdb", "--nx", "--batch", *(word for command in commands for word in ("-ex", command)), program],
                                    capture_output=True, text=True, check=False)
        lines = dict(line.split(":", 1) for line in result.stdout.splitlines() if ":" in line)
        for expression, text in EXPECTED.items():
            self.assertEqual(lines.get(expression, result.stdout + result.stderr), text, expression)
        self.assertEqual(lines["few"], "Tensor<float> [2, 3] = {1, 2...}")


if __name__ == "__main__":
    if shutil.which("gdb") is None:
        print("skipped: there is no gdb")
        sys.exit(SKIPPED)
    unittest.main()
