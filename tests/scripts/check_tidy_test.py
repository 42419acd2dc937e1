"""Runs scripts/check-tidy in a small repository, with stand-ins for cmake and clang-tidy that print their arguments."""

import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

SCRIPT = pathlib.Path(__file__).resolve().parents[2] / "scripts" / "check-tidy"
FILES = {
    "src/a.hpp": "int a;\n",
    "src/a.cpp": '#include "a.hpp"\n',
    "src/b.cpp": '#include "a.hpp"\n',
    "src/kernels.cu": "",
    "src/no_mpi.cpp": "",
    "src/alone.hpp": "",
    ".gitignore": "build/\n",
}
CLANG_TIDY = """#!/bin/sh
[ "$1" = --version ] && { echo "LLVM version VERSION.1.7"; exit 0; }
echo "looks at $*"
for file; do :; done
grep -q FAULT "$file" && exit 1
exit 0
"""


@unittest.skipUnless(list(pathlib.Path("/usr/lib").glob("llvm-*/lib/clang/*/include/omp.h")), "there is no omp.h of clang")
class CheckTidy(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name, "repository").resolve()
        entries = [{"directory": str(self.root), "file": f"{self.root}/src/{name}",
                    "command": f"c++ --param=ggc-min-heapsize=6 -Werror -DA='a b' -O1 -c {self.root}/src/{name}"} for name in ("a.cpp", "b.cpp")]
        cmake = f"#!/bin/sh\nmkdir -p build/desk && cat > build/desk/compile_commands.json << 'END'\n{json.dumps(entries)}\nEND\n"
        self.write(FILES | {"scripts/check-tidy": SCRIPT.read_text(), "../bin/cmake": cmake,
                            "../bin/clang-tidy-19": CLANG_TIDY.replace("VERSION", "19")})
        self.environment = dict(os.environ, PATH=f"{self.root.parent}/bin:/usr/bin:/bin", GIT_CONFIG_GLOBAL="/dev/null")
        self.git("init", "--quiet", "--initial-branch=main")
        self.commit("first")

    def write(self, files):
        for name, text in files.items():
            path = self.root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
            path.chmod(0o755)

    def git(self, *arguments):
        subprocess.run(["git", *arguments], cwd=self.root, env=self.environment, check=True)

    def commit(self, message):
        self.git("add", ".")
        self.git("-c", "user.name=a", "-c", "user.email=a@b", "commit", "--quiet", f"--message={message}")

    def check(self, *arguments):
        result = subprocess.run([sys.executable, self.root / "scripts/check-tidy", *arguments], cwd=self.root, env=self.environment,
                                capture_output=True, text=True, check=False)
        return result.returncode, result.stdout + result.stderr

    def test_what_changed(self):
        self.write({"src/a.cpp": "FAULT\n"})
        self.commit("second")
        self.write({"src/c.cpp": ""})
        code, text = self.check()
        self.assertEqual(code, 1, text)
        self.assertRegex(text, r"what changed since [0-9a-f]+ first\n")
        self.assertIn("looks at --quiet", text)
        self.assertIn("src/c.cpp is passed over: it is not compiled here", text)
        self.assertIn("1 files by 1 compilations", text)
        self.assertIn("what changed since", self.check("--base", "HEAD")[1])
        self.assertEqual(self.check("--base", "HEAD")[0], 0)

    def test_comments_texts_and_includes_are_no_changes(self):
        self.write({"src/a.cpp": '#include "a.hpp"\nint b;  // of a\nconst char* c = "one";\n'})
        self.commit("second")
        self.git("mv", "src/b.cpp", "src/d.cpp")
        self.write({"src/a.cpp": '#include "x.hpp"\n// Of b.\nint b;\nconst char* c = "two \\" // three";\n'})
        self.assertIn("no source file", self.check("--base", "HEAD")[1])
        self.write({"src/a.cpp": '#include "x.hpp"\nint b = 1;\nconst char* c = "two";\n'})
        self.assertIn("1 files by 1 compilations", self.check("--base", "HEAD")[1])

    def test_commands_are_for_clang(self):
        self.assertEqual(self.check("src/a.cpp")[0], 0)
        command = json.loads((self.root / "build/desk/tidy/compile_commands.json").read_text())[0]["command"]
        for left_out in ("--param", "-Werror"):
            self.assertNotIn(left_out, command)
        self.assertIn("'-DA=a b' -O1", command)

    def test_headers_by_a_source(self):
        self.write({"src/a.cpp": '#include "a.hpp"\nFAULT\n'})
        code, text = self.check("src/a.hpp")
        self.assertEqual(code, 1, text)
        self.assertIn(r"--header-filter=^(src/a\.hpp)$ src/a.cpp", text)

    def test_headers_by_way_of_others(self):
        self.write({"src/a.hpp": '#include "inner.hpp"\n', "src/inner.hpp": '#include "a.hpp"\n'})
        self.git("add", ".")
        self.assertIn(r"1 files by 1 compilations", self.check("src/inner.hpp")[1])

    def test_passed_over(self):
        code, text = self.check("src/kernels.cu", "src/no_mpi.cpp", "src/alone.hpp")
        self.assertEqual(code, 0, text)
        for shown in ("kernels.cu is passed over: it is for GPUs", "no_mpi.cpp is passed over: it is not compiled here",
                      "alone.hpp is passed over: no source that is compiled here includes it"):
            self.assertIn(shown, text)

    def test_wrong_calls(self):
        self.assertEqual(self.check("src/gone.cpp")[0], 2)
        self.assertEqual(self.check("--base", "gone")[0], 2)
        self.assertEqual(self.check()[0], 2)  # no commit before the first

    def test_without_a_new_clang_tidy(self):
        (self.root / "../bin/clang-tidy-19").unlink()
        self.write({"../bin/clang-tidy": CLANG_TIDY.replace("VERSION", "14")})
        self.environment["PATH"] = f"{self.root.parent}/bin"
        code, text = self.check("src/a.cpp")
        self.assertEqual(code, 77, text)
        self.assertIn("install clang-tidy-19 and libomp-19-dev", text)


if __name__ == "__main__":
    unittest.main()
