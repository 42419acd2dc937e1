"""Runs scripts/check-headers in a small repository."""

import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

SCRIPT = pathlib.Path(__file__).resolve().parents[2] / "scripts" / "check-headers"


class CheckHeaders(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.folder)
        (self.folder / "scripts").mkdir()
        shutil.copy(SCRIPT, self.folder / "scripts")
        self.write("include/trireme/base.hpp", "#pragma once\n")
        self.write("include/trireme/middle.hpp", '#pragma once\n#include "trireme/base.hpp"\n')
        self.write("include/trireme/top.hpp", '#pragma once\n#include "trireme/middle.hpp"\n')
        self.write("include/trireme/other.hpp", "#pragma once\n")
        self.git("init", "--quiet")
        self.commit()

    def write(self, path, text):
        (self.folder / path).parent.mkdir(parents=True, exist_ok=True)
        (self.folder / path).write_text(text)

    def git(self, *command):
        return subprocess.run(["git", "-c", "user.name=a", "-c", "user.email=a@b", *command], cwd=self.folder, check=True,
                              capture_output=True, text=True).stdout.strip()

    def commit(self):
        self.git("add", "--all")
        self.git("commit", "--quiet", "--message", "a change")
        return self.git("rev-parse", "HEAD")

    def headers(self, *options, landed=None, code=0):
        environment = {name: value for name, value in os.environ.items() if name != "TRIREME_LANDED"}
        if landed is not None:
            environment["TRIREME_LANDED"] = landed
        result = subprocess.run([sys.executable, self.folder / "scripts/check-headers", "--list", *options], capture_output=True,
                                text=True, env=environment, check=False)
        self.assertEqual(result.returncode, code, result.stdout + result.stderr)
        return [line.removeprefix("trireme/") for line in result.stdout.splitlines() if line.startswith("trireme/")]

    def test_a_header_that_changed_and_all_that_include_it(self):
        landed = self.git("rev-parse", "HEAD")
        self.write("include/trireme/middle.hpp", '#pragma once\n#include "trireme/base.hpp"\nint x();\n')
        self.assertEqual(self.headers("--base", landed), ["middle.hpp", "top.hpp"])  # it need not be committed
        self.commit()
        self.assertEqual(self.headers(landed=landed), ["middle.hpp", "top.hpp"])
        self.write("include/trireme/another.hpp", "#pragma once\n")
        self.assertEqual(self.headers(landed=landed), ["another.hpp", "middle.hpp", "top.hpp"])

    def test_users_of_a_header_that_is_gone(self):
        landed = self.git("rev-parse", "HEAD")
        (self.folder / "include/trireme/base.hpp").unlink()
        self.assertEqual(self.headers("--base", landed), ["middle.hpp", "top.hpp"])

    def test_other_files_change_no_header(self):
        landed = self.git("rev-parse", "HEAD")
        self.write("src/base.cpp", '#include "trireme/base.hpp"\n')
        self.commit()
        self.assertEqual(self.headers(landed=landed), [])

    def test_all_of_them_where_the_last_landed_commit_is_not_known(self):
        every = ["base.hpp", "middle.hpp", "other.hpp", "top.hpp"]
        self.assertEqual(self.headers(), every)
        self.assertEqual(self.headers(landed="0" * 40), every)
        self.assertEqual(self.headers(landed=self.git("rev-parse", "HEAD")), every)
        self.headers("--base", "nothing", code=1)


if __name__ == "__main__":
    unittest.main()
