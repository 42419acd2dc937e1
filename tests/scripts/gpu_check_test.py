"""Runs scripts/gpu-check with a stand-in for nvidia-smi and programs that do what a test tells them."""

import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

SCRIPT = pathlib.Path(__file__).resolve().parents[2] / "scripts" / "gpu-check"
PASSES = {name: "echo fine"
          for name in ("cuda_device_test", "cuda_ops_test", "cuda_gpt_test", "cuda_images_test", "cuda_recurrent_test",
                       "cuda_float8_linear_test", "cuda_data_parallel_test", "comm_nccl_ranks")}


class GpuCheck(unittest.TestCase):
    def check(self, programs, gpu="echo 'A GPU, 580.1, 1 MiB'", script=SCRIPT):
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            for program, text in (programs | ({"nvidia-smi": gpu} if gpu else {})).items():
                (folder / program).write_text(f"#!/bin/sh\n{text}\n")
                (folder / program).chmod(0o755)
            environment = dict(os.environ, PATH=f"{folder}:/usr/bin:/bin")
            code = subprocess.run([sys.executable, script, "--part", "1", "--programs", folder, "--report", folder / "report"],
                                  env=environment, capture_output=True, check=False).returncode
            reports = folder / "report"
            if not reports.exists():
                return code, None, None
            return (code, json.loads((reports / "gpu-check-1.json").read_text()), (reports / "gpu-check-1.md").read_text())

    def test_without_a_gpu_it_is_skipped(self):
        self.assertEqual(self.check(PASSES, gpu="exit 9"), (77, None, None))

    def test_all_pass(self):
        code, report, text = self.check(PASSES)
        self.assertEqual(code, 0)
        self.assertEqual(report["gpu"], "A GPU, 580.1, 1 MiB")
        self.assertEqual({run["exit_code"] for run in report["runs"]}, {0})
        self.assertIn("comm_nccl_ranks 4 fails", [run["command"] for run in report["runs"]])
        self.assertIn("| `cuda_gpt_test` | passed |", text)

    def test_a_failure_is_shown_with_what_it_printed(self):
        code, _, text = self.check(PASSES | {"cuda_ops_test": "echo 3 of 4 wrong; exit 1"})
        self.assertEqual(code, 1)
        self.assertIn("| `cuda_ops_test` | FAILED with code 1 |", text)
        self.assertIn("3 of 4 wrong", text)

    def test_programs_that_skip_are_no_success(self):
        self.assertEqual(self.check(PASSES | {"cuda_ops_test": "exit 77"})[0], 1)

    def test_a_program_that_never_ends_is_out_of_time(self):
        source = SCRIPT.read_text().replace("PART_SECONDS = 500", "PART_SECONDS = 1")
        with tempfile.TemporaryDirectory() as name:
            quick = pathlib.Path(name, "scripts", "gpu-check")
            quick.parent.mkdir()
            quick.write_text(source)
            code, _, text = self.check(PASSES | {"cuda_ops_test": "exec sleep 60"}, script=quick)
        self.assertEqual(code, 1)
        self.assertIn("| `cuda_ops_test` | out of time |", text)


if __name__ == "__main__":
    unittest.main()
