"""Runs benchmarks/build_time in a folder whose demo, compiler and build are stand-ins."""

import contextlib
import importlib.machinery
import importlib.util
import io
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest
from unittest import mock

sys.dont_write_bytecode = True
SCRIPT = pathlib.Path(__file__).resolve().parents[2] / "benchmarks" / "build_time"
DEMO = """#!/bin/sh
echo "== 1 of 3: packages"
echo "== 2 of 3: the library"
sleep 0.2
mkdir -p build/release
echo "== 3 of 3: two ranks train"
sleep 0.2
echo "step 1/10  loss 5.48  100 tokens/s"
sleep 0.2
echo "step 10/10  loss 1.2"
"""


class BuildTime(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.folder)
        for name in ("benchmarks", "scripts", "build"):
            (self.folder / name).mkdir()
        shutil.copy(SCRIPT, self.folder / "benchmarks")
        self.write_demo(DEMO)

    def write_demo(self, text):
        demo = self.folder / "scripts/demo"
        demo.write_text(text)
        demo.chmod(0o755)

    def run_rows(self, *rows):
        environment = dict(os.environ, CXX="true")  # compiles in no time: the bounds count once
        result = subprocess.run([sys.executable, self.folder / "benchmarks/build_time", *rows], capture_output=True, text=True,
                                env=environment)
        return result.returncode, result.stdout + result.stderr

    def figures(self):
        return json.loads((self.folder / "build/build_time.json").read_text())

    def keep(self, **figures):
        (self.folder / "build/build_time.json").write_text(json.dumps(figures))

    def test_the_demo_is_timed_from_its_packages_on(self):
        code, output = self.run_rows("demo")
        self.assertEqual(code, 0, output)
        figures = self.figures()
        self.assertGreater(figures["demo_first_loss"], 0.35)
        self.assertGreater(figures["demo"], figures["demo_first_loss"] + 0.15)
        self.assertGreater(figures["demo_first_loss"], figures["demo_build"] + 0.15)

    def test_a_demo_that_fails_or_tells_no_loss_is_no_figure(self):
        for text in (DEMO + "exit 3\n", DEMO.replace("loss", "lost")):
            shutil.rmtree(self.folder / "build/release", ignore_errors=True)
            self.write_demo(text)
            code, output = self.run_rows("demo")
            self.assertEqual(code, 1, output)
            self.assertFalse((self.folder / "build/build_time.json").exists())

    def test_what_is_built_already_is_not_timed(self):
        (self.folder / "build/release").mkdir()
        code, output = self.run_rows("demo")
        self.assertEqual(code, 1)
        self.assertIn("clean clone", output)

    def test_a_figure_over_its_bound_is_named(self):
        self.keep(build=419.0, tests=5400.0)
        code, output = self.run_rows("report")
        self.assertEqual(code, 1)
        self.assertIn("over the bound: tests", output)

    def test_a_slower_processor_is_allowed_half_as_much_again_and_beyond_that_nothing_is_judged(self):
        loader = importlib.machinery.SourceFileLoader("build_time", str(SCRIPT))
        build_time = importlib.util.module_from_spec(importlib.util.spec_from_loader("build_time", loader))
        loader.exec_module(build_time)
        for ratio, figure, code in ((1, 39, 0), (1, 41, 1), (1.4, 55, 0), (1.4, 57, 1), (1.6, 57, 0), (1.6, 600, 0)):
            printed = io.StringIO()
            with (mock.patch.object(build_time, "calibration_seconds", lambda: ratio * build_time.CALIBRATION_SECONDS),
                  mock.patch.object(build_time, "read_figures", lambda: {"kernel": figure}),
                  mock.patch.object(build_time, "units", lambda: 0),
                  mock.patch.dict(build_time.BOUNDS, kernel=(40, "a kernel")), contextlib.redirect_stdout(printed)):
                self.assertEqual(build_time.report(), code, (ratio, figure))
            self.assertEqual("not judged" in printed.getvalue(), ratio > 1.5)

    def test_what_a_run_may_take_follows_the_machine(self):
        code, output = self.run_rows("allowed")
        self.assertEqual(code, 0, output)
        self.assertIn("2100", output.splitlines())
        self.assertIn("calibration", self.figures())
        self.keep(kernel=44.0, calibration=3.1)  # the machine was slower when the run began
        code, output = self.run_rows("report")
        self.assertEqual(code, 1, output)
        self.keep(kernel=41.0, calibration=3.1)
        code, output = self.run_rows("report")
        self.assertEqual(code, 0, output)

    def test_figures_within_their_bounds_pass(self):
        self.keep(build=599.0, tests=449.0)
        code, output = self.run_rows("--ci-seconds", "2099", "report")
        self.assertEqual(code, 0, output)
        self.assertIn(".ci/run", output)
        code, output = self.run_rows("--ci-seconds", "2101", "report")
        self.assertEqual(code, 1, output)

    def test_what_comes_out_of_the_compiler_cache_has_a_name_of_its_own_and_no_bound(self):
        bin_folder = self.folder / "bin"
        bin_folder.mkdir()
        for hits, name in ((95, "demo_cached"), (1, "demo")):
            shutil.rmtree(self.folder / "build")
            (self.folder / "build").mkdir()
            (self.folder / "build/cache_at_begin.json").write_text("[0, 0]")
            ccache = bin_folder / "ccache"  # of two calls the first comes before the row
            ccache.write_text(f"""#!/bin/sh
if [ -e {self.folder}/called ]; then hits={hits}; misses={100 - hits}; else hits=0; misses=0; fi
touch {self.folder}/called
printf 'direct_cache_hit\\t%s\\npreprocessed_cache_hit\\t0\\ncache_miss\\t%s\\n' $hits $misses
""")
            ccache.chmod(0o755)
            (self.folder / "called").unlink(missing_ok=True)
            with mock.patch.dict(os.environ, PATH=f"{bin_folder}:{os.environ['PATH']}"):
                code, output = self.run_rows("--cache", "demo")
            self.assertEqual(code, 0, output)
            self.assertIn(name, self.figures())
            self.assertEqual("demo" in self.figures(), name == "demo")

    def test_a_run_with_a_full_cache_has_a_bound_of_its_own_and_one_with_half_of_it_none(self):
        ccache = self.folder / "bin/ccache"
        ccache.parent.mkdir()
        (self.folder / "build/cache_at_begin.json").write_text("[0, 0]")
        for hits, seconds, code, name in ((95, 1199, 0, "ci_cached"), (95, 1201, 1, "ci_cached"), (5, 1201, 0, "ci"),
                                          (5, 2101, 1, "ci"), (50, 4000, 0, "ci_partly_cached")):
            ccache.write_text(f"#!/bin/sh\nprintf 'direct_cache_hit\\t{hits}\\ncache_miss\\t{100 - hits}\\n'\n")
            ccache.chmod(0o755)
            self.keep(build_cached=5000.0)
            with mock.patch.dict(os.environ, PATH=f"{ccache.parent}:{os.environ['PATH']}"):
                result, output = self.run_rows("--ci-seconds", str(seconds), "report")
            self.assertEqual(result, code, (hits, seconds, output))
            self.assertIn(name, self.figures())
            self.assertIn("with objects from the compiler cache", output)

    def test_objects_that_were_compiled_are_counted(self):
        for folder, objects in (("release", 500), ("tsan", 251)):
            (self.folder / "build" / folder).mkdir()
            rows = [f"0\t1\t2\tsrc/{number}.cpp.o\thash" for number in range(objects)] + ["0\t1\t2\tbin/program\thash"]
            (self.folder / "build" / folder / ".ninja_log").write_text("# ninja log v5\n" + "\n".join(rows + rows[:1]) + "\n")
        code, output = self.run_rows("report")
        self.assertEqual(code, 1, output)
        self.assertIn("751 of", output)
        self.assertIn("over the bound: units", output)


if __name__ == "__main__":
    unittest.main()
