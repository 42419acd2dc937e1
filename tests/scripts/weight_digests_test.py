"""Runs scripts/weight-digests in a repository of two commits with programs whose output each test sets."""

import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

SCRIPT = pathlib.Path(__file__).resolve().parents[2] / "scripts" / "weight-digests"
PROGRAM = "tests/digests/weight_digests.cpp"  # here a shell script, which `cmake` copies
CMAKE = f'#!/bin/sh\n[ "$1" = --build ] || exit 0\nmkdir -p build/release/bin && cp {PROGRAM} build/release/bin/weight_digests\n'
LINES = ("gpt Float32 plain 1x1x1 1  aa bb", "gpt Float32 sharded 2x1x1 3  cc dd", "cnn Float32 plain 1x2x1 1  refused")


def printing(*lines):
    return "#!/bin/sh\n" + "".join(f"echo '{line}'\n" for line in lines)


class WeightDigests(unittest.TestCase):
    def compare(self, before, after, expected="", arguments=("--against", "HEAD"), cmake=CMAKE, runs=1):
        """Exit code and output of the last run; a second run finds the worktree. `before` is committed, `after` is in the working tree."""
        with tempfile.TemporaryDirectory() as name:
            self.root = pathlib.Path(name, "repository").resolve()
            files = {"scripts/weight-digests": SCRIPT.read_text(), "tests/digests/expected_changes": expected, ".gitignore": "build/\n"}
            self.write(files | ({PROGRAM: before} if before else {}))
            self.write({"../bin/cmake": cmake})
            self.environment = dict(os.environ, PATH=f"{self.root.parent}/bin:/usr/bin:/bin", GIT_CONFIG_GLOBAL="/dev/null")
            self.git("init", "--quiet")
            self.git("add", ".")
            self.git("-c", "user.name=a", "-c", "user.email=a@b", "commit", "--quiet", "--message=before")
            self.write({PROGRAM: after})
            for _ in range(runs):
                result = self.run_script(*arguments)
            self.assertEqual((self.root / PROGRAM).read_text(), after)
            return result.returncode, result.stdout + result.stderr

    def write(self, files):
        for name, text in files.items():
            path = self.root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
            path.chmod(0o755)

    def git(self, *arguments):
        subprocess.run(["git", *arguments], cwd=self.root, env=self.environment, check=True)

    def run_script(self, *arguments):
        return subprocess.run([sys.executable, self.root / "scripts" / "weight-digests", *arguments], env=self.environment,
                              capture_output=True, text=True, check=False)

    def test_equal(self):
        for runs in (1, 2):
            code, text = self.compare(printing(*LINES), printing(*reversed(LINES)), runs=runs)
            self.assertEqual(code, 0, text)
            self.assertIn("3 lines: 0 differ, 0 of them excused", text)

    def test_different(self):
        code, text = self.compare(printing(*LINES), printing(LINES[0], LINES[1].replace("dd", "de"), LINES[2]))
        self.assertEqual(code, 1, text)
        self.assertIn("differs: gpt Float32 sharded 2x1x1 3  cc dd -> cc de\n", text)
        self.assertIn("3 lines: 1 differ, 0 of them excused", text)

    def test_lines_that_one_side_lacks(self):
        for before, after, shown in ((LINES, LINES[:2], "refused -> no line"), (LINES[1:], LINES, "no line -> aa bb")):
            code, text = self.compare(printing(*before), printing(*after))
            self.assertEqual(code, 1, text)
            self.assertIn(shown, text)

    def test_excused(self):
        changed = printing(*(line.replace("cc", "ee") for line in LINES))
        code, text = self.compare(printing(*LINES), changed, "# why\n* sharded *: another order\n")
        self.assertEqual(code, 0, text)
        self.assertIn("excused: gpt Float32 sharded 2x1x1 3  cc dd -> ee dd  (another order)", text)
        self.assertEqual(self.compare(printing(*LINES), changed, "gpt * plain *: another order\n")[0], 1)

    def test_an_excuse_needs_a_reason(self):
        code, text = self.compare(printing(*LINES), printing(*LINES), "gpt *\n")
        self.assertEqual(code, 2, text)
        self.assertIn('"gpt *" is not PATTERN: reason', text)

    def test_nothing_to_compare(self):
        for before, after, shown in ((None, printing(*LINES), "compare with a commit that has it"),
                                     (printing(*LINES), "#!/bin/sh\nexit 3\n", "exit code 3"),
                                     (printing(*LINES), printing(), "printed nothing")):
            code, text = self.compare(before, after)
            self.assertEqual(code, 2, text)
            self.assertIn(shown, text)

    def test_a_folder_that_is_no_worktree(self):
        loses_git = CMAKE + "test -d .git || rm .git\n"  # a worktree's is a file
        code, text = self.compare(printing(*LINES), printing(*LINES[:1]), cmake=loses_git, runs=2)
        self.assertEqual(code, 2, text)
        self.assertIn("is no worktree: remove it", text)

    def test_list(self):
        code, text = self.compare(printing(), printing(*LINES), arguments=("--list",))
        self.assertEqual(code, 0, text)
        for line in LINES:
            self.assertIn(line, text)


if __name__ == "__main__":
    unittest.main()
