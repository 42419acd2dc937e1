"""Runs scripts/tests-of in a small checkout with a build folder that has the files of ninja and ctest."""

import pathlib
import subprocess
import sys
import tempfile
import unittest

SCRIPT = pathlib.Path(__file__).resolve().parents[2] / "scripts" / "tests-of"

FILES = {
    "include/trireme/comm/launch.hpp": "",
    "include/trireme/comm/group.hpp": "",
    "include/trireme/models/architectures/gpt.hpp": '#include "trireme/comm/group.hpp"\n',
    "src/comm/hub.hpp": "",
    "src/comm/hub.cpp": '#include "comm/hub.hpp"\n#include "trireme/comm/group.hpp"\n',
    "src/comm/launch_tcp.cpp": '#include "trireme/comm/launch.hpp"\n#include "comm/hub.hpp"\n',
    "src/comm/group_kernels.cpp": '#include "trireme/comm/group.hpp"\n#include "trireme/comm/launch.hpp"\n',
    "src/comm/forgotten.hpp": "",
    "tests/suite.hpp": "",
    "tests/suite.cpp": '#include "suite.hpp"\n',
    "tests/comm/launch_test.cpp": '#include "suite.hpp"\n#include "trireme/comm/launch.hpp"\n',
    "tests/comm/group_test.cpp": '#include <trireme/comm/group.hpp>\n',
    "tests/models/gpt_test.cpp": '#include "trireme/models/architectures/gpt.hpp"\n',
    "tools/run/main_of_run.cpp": "",
}


def object_of(source):
    return f"{source.replace('/', '_')}.o"


def program(name, *inputs, needs=()):
    return f"build bin/{name}: CXX_EXECUTABLE_LINKER__{name}_Release {' '.join(inputs)} || {' '.join(f'bin/{need}' for need in needs)}\n"


class TestsOf(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name, "checkout").resolve()
        build = "build/release"
        compiled = "".join(f"build {object_of(name)}: CXX_COMPILER__a_Release {self.root}/{name} || x\n" for name in FILES if name.endswith("cpp"))
        ninja = compiled + "build tests/libsuite.a: CXX_STATIC_LIBRARY_LINKER__suite_Release tests_suite.cpp.o || x\n"
        ninja += program("comm_test", object_of("tests/comm/launch_test.cpp"), "| tests/libsuite.a", needs=["trireme-run"])
        ninja += program("group_test", object_of("tests/comm/group_test.cpp"))
        ninja += program("gpt_test", object_of("tests/models/gpt_test.cpp"))
        ninja += program("trireme-run", object_of("tools/run/main_of_run.cpp"))
        tests = f'add_test([=[comm_test]=] "{self.root}/{build}/bin/comm_test")\n'
        tests += f'add_test([=[group_test_2]=] "/usr/bin/mpiexec" "-n" "2" "{self.root}/{build}/bin/group_test")\n'
        tests += f'add_test([=[gpt_test.avx2]=] "{self.root}/{build}/bin/gpt_test")\n'
        tests += f'add_test([=[run_well]=] "/x/run_test" "{self.root}/{build}/bin/trireme-run")\n'
        for name, text in (FILES | {"scripts/tests-of": SCRIPT.read_text(), f"{build}/build.ninja": ninja,
                                    f"{build}/tests/CTestTestfile.cmake": tests}).items():
            path = self.root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)

    def ask(self, *arguments):
        result = subprocess.run([sys.executable, self.root / "scripts/tests-of", *arguments], cwd=self.root, capture_output=True,
                                text=True, check=False)
        return result.returncode, result.stdout + result.stderr

    def test_a_header_that_tests_include(self):
        code, text = self.ask("include/trireme/comm/group.hpp")
        self.assertEqual(code, 0, text)
        self.assertIn("  closest: group_test_2\n    cmake --build build/release --target group_test\n"
                      "    ctest --test-dir build/release --tests-regex '^(group_test_2)$'\n", text)
        self.assertIn("  others: 1 tests that include it indirectly", text)
        self.assertIn(r"  others: gpt_test.avx2", self.ask("--all", "include/trireme/comm/group.hpp")[1])
        self.assertIn(r"'^(gpt_test\.avx2)$'", self.ask("--all", "include/trireme/comm/group.hpp")[1])

    def test_a_source_by_its_header(self):
        self.assertIn("  closest: group_test_2\n", self.ask("src/comm/group_kernels.cpp")[1])

    def test_through_who_uses_it(self):
        for name in ("src/comm/hub.cpp", "src/comm/hub.hpp"):
            code, text = self.ask(name)
            self.assertEqual(code, 0, text)
            self.assertIn("  closest, through who uses it: comm_test\n", text)

    def test_of_tests_and_tools(self):
        self.assertIn("  compiled into: comm_test\n", self.ask("tests/suite.cpp")[1])
        self.assertIn("  compiled into: comm_test\n", self.ask("tests/suite.hpp")[1])
        self.assertIn("  compiled into: comm_test run_well\n    cmake --build build/release --target comm_test trireme-run\n",
                      self.ask("tools/run/main_of_run.cpp")[1])

    def test_none(self):
        code, text = self.ask("src/comm/forgotten.hpp")
        self.assertEqual(code, 1, text)
        self.assertIn("no test includes it", text)

    def test_wrong_calls(self):
        for arguments, shown in ((("src/comm/gone.cpp",), "no source file of this checkout"),
                                 (("--build", "build/other", "src/comm/hub.hpp"), "is not configured: cmake --preset release")):
            code, text = self.ask(*arguments)
            self.assertEqual(code, 2, text)
            self.assertIn(shown, text)


if __name__ == "__main__":
    unittest.main()
