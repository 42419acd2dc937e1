"""Makes violations that scripts/check-layers must find, one at a time."""

import pathlib
import subprocess
import sys
import tempfile
import unittest

SCRIPT = pathlib.Path(__file__).resolve().parents[2] / "scripts" / "check-layers"

ARCHITECTURE = """
```
L2  upper   other
L1  middle  (not a room)
L0  base
```

| room | holds | never sees |
|---|---|---|
| base | things | anything above |
| upper, other | more | base |

| a room | what comes in | what goes out |
|---|---|---|
| upper | things | more |
"""

CLEAN = {
    "ARCHITECTURE.md": ARCHITECTURE,
    "include/trireme/all.hpp": '#include "trireme/middle/b.hpp"\n',
    "include/trireme/base/a.hpp": "#include <vector>\n",
    "include/trireme/middle/b.hpp": '#include "trireme/base/a.hpp"\n',
    "src/middle/b.cpp": '#include "trireme/middle/b.hpp"\n#include "middle/private.hpp"\n#include <mpi.h>\n',
    "src/middle/private.hpp": "",
    "src/upper/c.cpp": '#include "trireme/middle/b.hpp"\n',
}


def run(files):
    with tempfile.TemporaryDirectory() as folder:
        for name, text in files.items():
            path = pathlib.Path(folder, name)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        result = subprocess.run([sys.executable, SCRIPT, "--root", folder], capture_output=True, text=True, check=False)
        return result.returncode, result.stderr


class CheckLayers(unittest.TestCase):
    def refuse(self, changes, text):
        code, errors = run(CLEAN | changes)
        self.assertEqual(code, 1)
        self.assertIn(text, errors)

    def test_clean(self):
        self.assertEqual(run(CLEAN), (0, ""))

    def test_higher_level(self):
        self.refuse({"src/base/a.cpp": '#include "trireme/middle/b.hpp"\n'},
                    "src/base/a.cpp:1: base (level 0) must not include middle (level 1)")

    def test_same_level(self):
        self.refuse({"include/trireme/other/d.hpp": "", "src/upper/c.cpp": '\n#include "trireme/other/d.hpp"\n'},
                    "src/upper/c.cpp:2: upper (level 2) must not include other (level 2)")

    def test_never_sees(self):
        self.refuse({"src/upper/c.cpp": '#include "trireme/base/a.hpp"\n'}, "upper never sees base")

    def test_missing_room(self):
        self.refuse({"src/attic/x.cpp": ""}, "the room attic is missing")

    def test_header_of_all_rooms(self):
        self.refuse({"src/upper/c.cpp": "#include <trireme/all.hpp>\n"}, "header of all rooms")

    def test_private_header(self):
        self.refuse({"src/upper/c.cpp": '#include "middle/private.hpp"\n'}, "private to src/middle")

    def test_shared_private_header(self):
        files = CLEAN | {"ARCHITECTURE.md": ARCHITECTURE.replace("middle", "device"),
                         "src/device/cuda/stream.hpp": "", "src/device/memory.hpp": "",
                         "src/upper/c.cpp": '#include "device/cuda/stream.hpp"\n'}
        files = {name: text for name, text in files.items() if "middle" not in name and "all" not in name}
        self.assertEqual(run(files), (0, ""))
        files["src/base/a.cpp"] = '#include "device/cuda/stream.hpp"\n'
        self.assertIn("must not include device", run(files)[1])
        files["src/upper/c.cpp"] = '#include "device/memory.hpp"\n'
        self.assertIn("private to src/device", run(files)[1])

    def test_forbidden_headers(self):
        for name in ("mpi.h", "nccl.h", "cuda_runtime.h", "dnnl.hpp", "iostream", "regex"):
            self.refuse({"include/trireme/base/a.hpp": f"#include <{name}>\n"}, f"must not include {name}")

    def test_circle(self):
        self.refuse({"include/trireme/base/a.hpp": '#include "trireme/base/z.hpp"\n',
                     "include/trireme/base/z.hpp": '#  include "a.hpp"\n'},
                    "circle: include/trireme/base/a.hpp -> include/trireme/base/z.hpp -> include/trireme/base/a.hpp")

    def test_sub_rooms(self):
        files = CLEAN | {"ARCHITECTURE.md": ARCHITECTURE + "\nmiddle: low < {left, right} < its own files\n",
                         "src/middle/low/l.hpp": "", "include/trireme/middle/left/m.hpp": "",
                         "src/middle/right/r.hpp": '#include "middle/low/l.hpp"\n',
                         "src/middle/b.cpp": '#include "middle/right/r.hpp"\n#include "trireme/middle/left/m.hpp"\n'}
        self.assertEqual(run(files), (0, ""))
        self.assertIn("in middle, low must not include left: only sub-rooms to its left",
                      run(files | {"src/middle/low/l.cpp": '#include "trireme/middle/left/m.hpp"\n'})[1])
        self.assertIn("in middle, right must not include left",
                      run(files | {"src/middle/right/r.cpp": '#include "trireme/middle/left/m.hpp"\n'})[1])
        files["ARCHITECTURE.md"] = files["ARCHITECTURE.md"].replace(" < its own files", "")
        self.assertIn("src/middle/b.cpp: it is in none of the sub-rooms of middle", run(files)[1])

    def test_sizes(self):
        self.refuse({"src/middle/private.hpp": "\n" * 401}, "src/middle/private.hpp: 401 lines; a file above 400")
        named = {"ARCHITECTURE.md": ARCHITECTURE + "middle/private.hpp is long because of its table.\n"}
        self.assertEqual(run(CLEAN | named | {"src/middle/private.hpp": "\n" * 401}), (0, ""))
        files = {f"src/middle/n{number}.hpp": "\n" * 400 for number in range(15)}
        self.refuse(files, "middle: 6004 lines")

    def test_direct_opens(self):
        for call in ("std::ifstream file(path);", "std::fopen(path, mode);", "const int file = ::open(path, 0);", "File::open(path);",
                     "if (std::filesystem::exists(path))", "fs::is_directory(path, unknown)", "fs::directory_iterator(path)"):
            self.refuse({"src/middle/private.hpp": f"\n{call}\n"}, "src/middle/private.hpp:2: ")
        for call in ("// std::ifstream", "Shared::open(path);", "files->open(path);", "std::filesystem::path path;"):
            self.assertEqual(run(CLEAN | {"src/middle/private.hpp": call}), (0, ""))
        self.refuse({"examples/a.cpp": "std::ofstream file;\n"}, "examples/a.cpp:1: std::ofstream")
        named = {"ARCHITECTURE.md": ARCHITECTURE + "\n| opens files by itself | why |\n|---|---|\n| `middle/private.hpp` | pipes |\n"}
        self.refuse(named, "middle/private.hpp opens no file by itself: remove it")
        self.assertEqual(run(CLEAN | named | {"src/middle/private.hpp": "std::ifstream file;"}), (0, ""))
        files = {"ARCHITECTURE.md": ARCHITECTURE.replace("base\n```", "base files\n```"), "src/files/f.cpp": "::open(path);\n"}
        self.assertEqual(run(CLEAN | files), (0, ""))

    def test_exports(self):
        self.refuse({"include/trireme/base/a.hpp": "\nnamespace trireme::base {\n"},
                    "include/trireme/base/a.hpp:2: a public header writes namespace trireme TRIREME_EXPORT {")
        declaration = "template <typename T>\nvoid f(T x, Options options = {});\n"
        self.refuse({"include/trireme/base/a.hpp": declaration},
                    "include/trireme/base/a.hpp:2: a function template without a body")
        for text in (declaration.replace("void", "TRIREME_EXPORT void"), declaration.replace(";", " {}"),
                     "template <typename T>\nclass A;\n", "template <typename M>\nA(const M&, Options = {}) -> A<M>;\n"):
            self.assertEqual(run(CLEAN | {"include/trireme/base/a.hpp": text}), (0, ""))

    def test_files_that_comments_name(self):
        gone = "middle/gone.hpp"
        missing = f"it names {gone}, which does not exist"
        self.refuse({"src/upper/c.cpp": "\n// As middle/gone.hpp says.\n"}, f"src/upper/c.cpp:2: {missing}")
        self.refuse({"src/upper/c.cpp": "int a;  /* See\nmiddle/gone.hpp. */\n"}, f"src/upper/c.cpp:2: {missing}")
        self.refuse({"tests/upper/a_test.cpp": "// gone.cpp\n"}, "tests/upper/a_test.cpp:1: it names gone.cpp")
        self.refuse({"docs/guide.md": "Read\n[this](../middle/gone.hpp).\n"}, "docs/guide.md:2: it names ../middle/gone.hpp")
        self.refuse({"tests/CMakeLists.txt": f"f()  # {gone}\n"}, f"tests/CMakeLists.txt:1: {missing}")
        self.refuse({"scripts/do": f"#!/bin/sh\n# {gone}\n"}, f"scripts/do:2: {missing}")
        self.refuse({"src/upper/c.cpp": "// tools/gone draws it\n"}, "it names tools/gone")

    def test_names_that_comments_may_have(self):
        for text in ("// middle/b.hpp, trireme/middle/b.hpp and b.cpp, src/middle and ./src/middle/b.cpp.\n",
                     'const char* a = "gone.cpp";  // a text is none\n', 'auto a = R"(// gone.cpp)";\n',
                     "constexpr int a = 1'000;  // b.cpp's limit is 1'000\n", "// https://example.org/gone.cpp\n",
                     "// *_gone.cpp, <room>/gone.cpp, _kernels.cpp, src/upper/gone*\n", "// build/release/gone.cmake, PREFIX/gone.py, x_body.hpp, main.cpp\n",
                     "// made.hpp, of an .in file\n"):
            self.assertEqual(run(CLEAN | {"src/upper/c.cpp": text, "src/upper/made.hpp.in": ""}), (0, ""), text)
        past = {"benchmarks/results/a.md": "gone.cpp", "CHANGELOG.md": "gone.cpp", "tests/data": "gone.cpp"}
        self.assertEqual(run(CLEAN | past), (0, ""))

    def test_no_table(self):
        self.refuse({"ARCHITECTURE.md": "nothing"}, "no table of levels")


if __name__ == "__main__":
    unittest.main()
