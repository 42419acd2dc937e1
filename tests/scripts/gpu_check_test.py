"""Runs scripts/gpu-check with stand-ins for nvidia-smi and the programs, whose behaviour each test sets."""

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
                       "cuda_transformers_test", "cuda_float8_linear_test", "cuda_data_parallel_test", "comm_nccl_ranks",
                       "parallel_nccl_graph")}


def prints(**figures):
    return f"echo some advice\necho '{json.dumps(figures)}'"


def trains(unit, rate, **others):
    rates = {f"{unit}_per_second": rate, "host_gap": 0.01}
    return prints(**rates, recorded=True, eager={f"{unit}_per_second": rate / 2, "host_gap": 0.5}, **others)


# PyTorch is as fast as gpu_gpt's eager steps; the programs record the order in which they run.
NOTES = 'echo "$(basename "$0") $*" >> "$(dirname "$0")/order"\n'
TRAINS = {"gpu_gpt": NOTES + trains("tokens", 3000.0),
          "gpu_resnet": NOTES + prints(images_per_second=80.0, host_gap=None, recorded=False,
                                       eager={"images_per_second": 80.0, "host_gap": None}),
          "gpu_kernels": prints(bandwidths={"copy": {"bytes_per_second": 4e12, "share_of_copy": 1},
                                            "adamw": {"bytes_per_second": 3.6e12, "share_of_copy": 0.9}},
                                products=[{"product": "2 x 3 x 4", "bfloat16_per_second": 7e14}]),
          "python3": 'test "$1" = -c && exit 0\n' + NOTES + prints(tokens_per_second=1500.0, images_per_second=100.0)}
NO_TORCH = {"python3": "exit 1"}


class GpuCheck(unittest.TestCase):
    def check(self, programs, gpu="echo 'A GPU, 580.1, 1 MiB'", part=1, seconds=500, change=("", "")):
        """Its exit code and reports; `change` is applied to the script, `self.order` is the recorded order of programs."""
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            script = folder / "scripts" / "gpu-check"
            script.parent.mkdir()
            script.write_text(SCRIPT.read_text().replace(*change))
            for program, text in (programs | ({"nvidia-smi": gpu} if gpu else {})).items():
                (folder / program).write_text(f"#!/bin/sh\n{text}\n")
                (folder / program).chmod(0o755)
            environment = dict(os.environ, PATH=f"{folder}:/usr/bin:/bin")
            code = subprocess.run([sys.executable, script, "--part", str(part), "--seconds", str(seconds), "--programs", folder,
                                   "--report", folder / "report"],
                                  env=environment, capture_output=True, check=False).returncode
            reports = folder / "report"
            self.order = (folder / "order").read_text().splitlines() if (folder / "order").exists() else []
            if not reports.exists():
                return code, None, None
            self.log = (reports / f"gpu-check-{part}.log").read_text()
            return (code, json.loads((reports / f"gpu-check-{part}.json").read_text()), (reports / f"gpu-check-{part}.md").read_text())

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
        for sleeps in ("exec sleep 60", "sleep 60 & exec sleep 60"):  # the child process keeps the output open
            code, report, text = self.check(PASSES | {"cuda_ops_test": sleeps}, seconds=1)
            self.assertEqual(code, 1)
            self.assertLess(max(run["seconds"] for run in report["runs"]), 30)
            self.assertIn("| `cuda_ops_test` | out of time |", text)

    def test_speed_is_compared_round_by_round(self):
        code, report, text = self.check(TRAINS, part=2)
        self.assertEqual(code, 0)
        gpt = "--layers=12 --heads=12 --width=768 --batch=32"
        self.assertEqual([line.replace(str(pathlib.Path(line.split()[1]).parent) + "/", "") for line in self.order],
                         3 * [f"gpu_gpt {gpt}", f"python3 gpu_gpt.py {gpt}", "gpu_resnet --batch=256",
                              "python3 gpu_resnet.py --batch=256"])
        self.assertIn("| GPT-2 124M | tokens | 3,000 | 1,500 | 2.00 | 1.0% | 1,500 | 50.0% |", text)
        self.assertIn("| ResNet-50 | images | 80 (no graph) | 100 | 0.80 | - | 80 | - |", text)
        self.assertEqual(report["comparisons"][0]["ratio"], 2)
        self.assertEqual(report["notes"], [])

    def test_large_models_and_kernels(self):
        code, _, text = self.check(TRAINS, part=3)
        self.assertEqual(code, 0)
        for size in ("350M", "774M", "1.5B"):
            self.assertIn(f"| GPT-2 {size} | tokens | 3,000 | 1,500 (by block) | 2.00 |", text)
        for size in ("774M, 8-bit", "1.5B, 8-bit"):
            self.assertIn(f"| GPT-2 {size} | tokens | 3,000 | 1,500 (by block, bfloat16) | 2.00 |", text)
        self.assertTrue(self.order[1].endswith("gpu_gpt.py --layers=24 --heads=16 --width=1024 --batch=32 --compile=blocks"))
        self.assertEqual(sum("gpu_gpt.py" in line for line in self.order), 2 * 3)
        self.assertIn("gpu_gpt --layers=36 --heads=20 --width=1280 --batch=16 --fp8=delayed", self.order)
        self.assertIn("| adamw | 3,600 | 90% |", text)
        self.assertIn("| 2 x 3 x 4 | 700 | - | - |", text)

    def test_the_median_counts(self):
        counts = 'echo . >> "$0.runs"\nset -- $(wc -l < "$0.runs")\n'  # the first run is the slowest
        code, report, _ = self.check(
            TRAINS | {"gpu_gpt": f'{counts}case $1 in 1) {trains("tokens", 1.0)};; 2) {trains("tokens", 30.0)};; '
                                 f'*) {trains("tokens", 20.0)};; esac'}, part=2)
        self.assertEqual(code, 0)
        self.assertEqual(report["comparisons"][0]["trireme"], 20)

    def test_a_missing_peer_is_said(self):
        code, report, text = self.check(TRAINS | NO_TORCH, part=2)
        self.assertEqual(code, 0)
        self.assertIn("the peer is missing", text)
        self.assertIn("| GPT-2 124M | tokens | 3,000 | - | - |", text)
        self.assertEqual({run["side"] for run in report["runs"]}, {"trireme"})

    def test_a_benchmark_that_fails_or_prints_no_figures_is_a_failure(self):
        for fails in ("echo out of memory; exit 4", "echo out of memory"):
            code, _, text = self.check(TRAINS | {"gpu_resnet": fails}, part=2)
            self.assertEqual(code, 1)
            self.assertIn("| `gpu_resnet --batch=256` | FAILED with code", text)
            self.assertIn("out of memory", text)
            self.assertIn("| GPT-2 124M | tokens | 3,000 | 1,500 | 2.00 |", text)

    def test_each_benchmark_has_a_limit_of_its_own(self):
        code, _, text = self.check(TRAINS | {"gpu_kernels": "exec sleep 60"}, part=3,
                                   change=("PROGRAM_SECONDS = 150", "PROGRAM_SECONDS = 1"))
        self.assertEqual(code, 1)
        self.assertIn("| `gpu_kernels` | out of time |", text)
        self.assertIn("| GPT-2 1.5B | tokens | 3,000 | 1,500 (by block) | 2.00 |", text)

    def test_each_test_has_a_limit_of_its_own(self):
        code, _, text = self.check(PASSES | {"cuda_device_test": "exec sleep 60"}, change=("TEST_SECONDS = 200", "TEST_SECONDS = 1"))
        self.assertEqual(code, 1)
        self.assertIn("| `cuda_device_test` | out of time |", text)
        self.assertIn("| `parallel_nccl_graph 4 fails` | passed |", text)

    def test_the_slower_ways_that_the_library_took_are_noted_once(self):
        warns = "echo trireme: cuDNN is missing; echo trireme: rank 1 failed: boom"
        _, report, text = self.check(PASSES | {"cuda_ops_test": warns, "cuda_gpt_test": warns})
        self.assertEqual(report["notes"], ["trireme: cuDNN is missing"])
        self.assertIn("trireme: cuDNN is missing\n", text)

    def test_a_long_output_is_shown_from_both_ends(self):
        _, report, text = self.check(PASSES | {"cuda_ops_test": "seq 1000; exit 1"})
        self.assertIn("\n1\n2\n", text)
        self.assertIn("[900 lines more in the log]", text)
        self.assertIn("\n999\n1000\n", text)
        self.assertIn("\n500\n", self.log)
        self.assertEqual(max(len(run["output"]) for run in report["runs"]), 101)

    def test_a_sanitizer_that_refuses_the_machine_is_noted(self):
        refuses = {"compute-sanitizer": "echo Error: Device not supported; exit 1"}
        code, report, _ = self.check(PASSES | refuses)
        self.assertEqual(code, 0)
        self.assertEqual(len(report["notes"]), 1)
        code, report, _ = self.check(PASSES | {"compute-sanitizer": "echo Invalid read; exit 1"})
        self.assertEqual(code, 1)

    def test_programs_find_libraries_among_the_packages_of_python(self):
        with tempfile.TemporaryDirectory() as packages:
            (pathlib.Path(packages) / "cudnn" / "lib").mkdir(parents=True)
            finds = {"python3": f"echo {packages}", "cuda_ops_test": "echo $LD_LIBRARY_PATH; exit 1"}
            _, _, text = self.check(PASSES | finds)
            self.assertIn(f"{packages}/cudnn/lib", text)

    def test_the_commit_of_packed_programs_is_named(self):
        stand_in = "#!/bin/sh\nabc\n"  # check() makes a script of every text
        self.assertEqual(self.check(PASSES | {"commit": "abc"})[1]["commit"], stand_in)

    def test_what_does_not_fit_is_said(self):
        slow = {"gpu_kernels": "sleep 1.5\n" + TRAINS["gpu_kernels"], "gpu_gpt": "sleep 1.5\n" + TRAINS["gpu_gpt"]}
        _, report, _ = self.check(TRAINS | slow, part=3, seconds=2)
        self.assertIn("GPT-2 1.5B, trireme: not run, the time was over.", report["notes"])
        _, report, _ = self.check(TRAINS | slow, part=2, seconds=2)
        self.assertIn("1 of 3 rounds were run; another did not fit into 2 seconds.", report["notes"])


if __name__ == "__main__":
    unittest.main()
