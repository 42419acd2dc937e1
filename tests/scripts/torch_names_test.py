"""Checks that the page of PyTorch's names was made from its table, and that its names exist."""

import pathlib
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]


def run(root, *options):
    return subprocess.run([sys.executable, ROOT / "scripts/torch-names", "--root", root, *options],
                          capture_output=True, text=True, check=False)


class TorchNames(unittest.TestCase):
    def test_of_this_checkout(self):
        result = run(ROOT, "--check")
        self.assertEqual((result.returncode, result.stderr), (0, ""))

    def test_problems(self):
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder)
            (root / "docs").mkdir()
            (root / "include").mkdir()
            (root / "include/a.hpp").write_text("int cat();\n")
            table = root / "docs/torch_names.tsv"
            table.write_text("## Shapes\ntorch.cat\tcat\t\ntorch.fft\t\tnot there yet\n")
            self.assertIn("differs from its table", run(root, "--check").stderr)
            self.assertEqual(run(root).returncode, 0)
            self.assertIn("| `torch.cat` | `cat` |  |", (root / "docs/torch_names.md").read_text())
            self.assertEqual(run(root, "--check").returncode, 0)
            table.write_text("torch.stack\tstack\t\n")
            self.assertIn("torch_names.tsv:1: no public header has stack", run(root, "--check").stderr)
            table.write_text("torch.stack\n")
            self.assertIn("torch_names.tsv:1: a row is", run(root, "--check").stderr)


if __name__ == "__main__":
    unittest.main()
