"""Runs scripts/install-packages with files in place of /etc/os-release and stand-ins for dpkg-query, apt-get, id and sudo."""

import os
import pathlib
import subprocess
import tempfile
import unittest

SCRIPT = pathlib.Path(__file__).resolve().parents[2] / "scripts" / "install-packages"
DEBIAN_12 = 'PRETTY_NAME="Debian GNU/Linux 12 (bookworm)"\nID=debian\nVERSION_ID="12"\n'
DEBIAN_13 = 'VERSION_ID="13"\nID=debian\n'
UBUNTU = "ID=ubuntu\nID_LIKE=debian\nVERSION_ID='24.04'\n"
FEDORA = "ID=fedora\nVERSION_ID=42\n"
# Only the packages with these names are installed.
DPKG = 'case " $INSTALLED " in *" ${@: -1} "*|*" all "*) printf installed ;; *) exit 1 ;; esac'
STAND_INS = {"dpkg-query": DPKG, "apt-get": 'echo "$*" >> "$LOG"', "id": "echo 0", "env": '/usr/bin/env "$@"'}


class InstallPackages(unittest.TestCase):
    def install(self, release, *packages, installed="", stand_ins=None, **environment):
        """Its exit code and stderr; self.calls has the calls of apt-get."""
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            if release is not None:
                (folder / "os-release").write_text(release)
            for program, text in (STAND_INS if stand_ins is None else stand_ins).items():
                (folder / program).write_text(f"#!/bin/bash\n{text}\n")
                (folder / program).chmod(0o755)
            for program in ("bash", "cat", "cut", "grep", "sed"):
                (folder / program).exists() or (folder / program).symlink_to(f"/usr/bin/{program}")
            log = folder / "log"
            result = subprocess.run(
                ["/bin/bash", SCRIPT, *packages], capture_output=True, text=True, check=False,
                env=dict(os.environ, PATH=name, TRIREME_OS_RELEASE=str(folder / "os-release"), LOG=str(log),
                         INSTALLED=installed, **environment))
            self.calls = log.read_text().splitlines() if log.exists() else []
            return result.returncode, result.stderr

    def test_systems_that_it_knows_get_what_is_missing(self):
        for release in (DEBIAN_12, DEBIAN_13, UBUNTU):
            code, errors = self.install(release, "--tests", "iproute2", installed="cmake ninja-build")
            self.assertEqual((code, errors), (0, ""))
            update, install = self.calls
            self.assertTrue(update.startswith("update"))
            words = install.split()
            self.assertIn("install", words)
            for package in ("g++", "libdnnl-dev", "libfmt-dev", "libopenmpi-dev", "openmpi-bin", "catch2", "iproute2"):
                self.assertIn(package, words)
            for word in ("cmake", "ninja-build", "--tests"):
                self.assertNotIn(word, words)
            self.install(release)
            self.assertNotIn("catch2", self.calls[1].split())

    def test_where_all_is_there_it_does_nothing_on_any_system(self):
        for release in (DEBIAN_12, FEDORA, None):
            self.assertEqual(self.install(release, installed="all"), (0, ""))
            self.assertEqual(self.calls, [])

    def test_elsewhere_it_says_what_is_needed_and_what_for(self):
        without_dpkg = {name: text for name, text in STAND_INS.items() if name not in ("dpkg-query", "apt-get")}
        for release, system in ((FEDORA, "fedora 42"), (DEBIAN_12.replace("12", "11"), "debian 11"), ("", "an unknown system,"), (None, "an unknown system,")):
            for stand_ins in (STAND_INS, without_dpkg):
                code, errors = self.install(release, "--tests", "iproute2", stand_ins=stand_ins)
                self.assertEqual(code, 1)
                self.assertIn(system, errors)
                self.assertRegex(errors, r"libdnnl-dev +oneDNN")
                self.assertRegex(errors, r"libopenmpi-dev +.*MPICH")
                self.assertRegex(errors, r"\n +procps +ps: the tests\n +iproute2\n")
                self.assertEqual(self.calls, [])
                self.assertEqual(self.install(release, stand_ins=stand_ins, TRIREME_PACKAGES="installed"), (0, ""))

    def test_without_rights_it_says_what_to_run(self):
        user = STAND_INS | {"id": "echo 1000"}
        code, errors = self.install(DEBIAN_12, stand_ins=user)
        self.assertEqual((code, self.calls), (1, []))
        self.assertIn("run as root: apt-get install g++", errors)
        code, errors = self.install(DEBIAN_12, stand_ins=user | {"sudo": 'echo "sudo" >> "$LOG"; exec "$@"'})
        self.assertEqual((code, errors), (0, ""))
        self.assertEqual(self.calls[0], "sudo")

    def test_what_apt_get_can_not_do_is_a_failure(self):
        code, _ = self.install(DEBIAN_12, stand_ins=STAND_INS | {"apt-get": "exit 100"})
        self.assertEqual(code, 100)


if __name__ == "__main__":
    unittest.main()
