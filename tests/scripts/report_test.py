"""Runs benchmarks/report with stand-ins for programs, mpirun and a Python with torch, whose answers each test sets."""

import contextlib
import html.parser
import importlib.util
import io
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import unittest
from unittest import mock

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILT = pathlib.Path.cwd().parent / "bin"  # where ctest runs this, beside the programs
sys.path.insert(0, str(ROOT / "benchmarks"))

from reporting import pairs, pytorch, quality  # noqa: E402
from reporting.command_line import main  # noqa: E402
from reporting.processes import Failure  # noqa: E402

# Runs the command after "mpirun -n 2" once.
MPIRUN = '#!/bin/sh\nshift 2\nexec "$@"\n'

# A program that takes turns, as one rank would: {figures} are its answers.
TAKES_TURNS = f"""#!{sys.executable}
import os, sys
sys.path.insert(0, {str(ROOT / "benchmarks" / "peers")!r})
from turns import take_turns
folder = next(word[8:] for word in sys.argv if word.startswith("--turns="))
take_turns(folder, {{name: (lambda value=value: value) for name, value in {{figures}}.items()}})
"""

# Writes its figures, times a factor that differs a little between runs, to the file of its last argument.
WRITES = """#!/bin/sh
echo . >> "$0.runs"
for file; do :; done
awk -v runs="$(wc -l < "$0.runs")" 'BEGIN { factor = 1 + 0.004 * (runs * 7 % 5); print "{"; {figures}; print "}" }' > "$file"
"""


def takes_turns(**figures):
    return TAKES_TURNS.replace("{figures}", repr(figures))


def writes(**figures):
    lines = [f'printf "\\"{name}\\": %.9f", {value} * factor' for name, value in figures.items()]
    return WRITES.replace("{figures}", '; print ","; '.join(lines))


def mllog(status="success"):
    def line(key, value=None, time_ms=1000, **metadata):
        return ":::MLLOG " + json.dumps({"namespace": "", "time_ms": time_ms, "event_type": "POINT_IN_TIME", "key": key,
                                         "value": value, "metadata": metadata})

    return "\n".join([line("submission_benchmark", "gpt_text"), line("target_quality", 1.8), line("seed", 1),
                      line("global_batch_size", 32), line("run_start", time_ms=2000),
                      line("eval_accuracy", 2.5, 5000, step=25), line("eval_accuracy", 1.7, 9000, step=50),
                      line("run_stop", time_ms=9500, status=status)])


def prints(text, code=0):
    return f"#!/bin/sh\ncat <<'END'\n{text}\nEND\nexit {code}\n"


LSTM = {"lstm": 0.5, "gru": 0.25, "onednn": 0.75}


class Pairs(unittest.TestCase):
    def test_the_interval_is_that_of_order_statistics(self):
        self.assertEqual([pairs.rank_of_bound(count)[0] for count in (5, 6, 9, 12, 15, 20, 25)], [0, 1, 2, 3, 4, 6, 8])
        interval = pairs.interval_of(list(range(15, 0, -1)))
        self.assertEqual((interval.low, interval.median, interval.high, interval.pairs), (4, 8, 12, 15))
        self.assertAlmostEqual(interval.coverage, 0.96484375)
        self.assertIsNone(pairs.interval_of([1.0] * 5).low)

    def test_slower_means_the_whole_interval(self):
        def judged(low, median, high):
            return pairs.verdict(pairs.Interval(median, low, high, 15, 0.96))

        self.assertEqual(judged(1.021, 1.05, 1.08), "slower")
        self.assertEqual(judged(1.019, 1.05, 1.08), "unclear")
        self.assertEqual(judged(0.90, 0.95, 0.979), "faster")
        self.assertEqual(judged(0.99, 1.0, 1.01), "same")
        self.assertEqual(judged(0.97, 1.0, 1.01), "unclear")
        self.assertEqual(judged(None, 1.5, None), "unclear")
        self.assertEqual(pairs.verdict(pairs.Interval(1.05, 1.03, 1.08, 14, 0.96)), "unclear")

    def test_more_pairs_narrow_an_interval_with_their_square_root(self):
        self.assertEqual(pairs.more_pairs(pairs.Interval(1.04, 1.00, 1.08, 15, 0.96)), 45)  # half as wide: four times as many
        self.assertIsNone(pairs.more_pairs(pairs.Interval(1.0201, 1.00, 1.04, 15, 0.96)))
        self.assertEqual(pairs.more_pairs(pairs.Interval(1.04, None, None, 4, None)), 11)


class Report(unittest.TestCase):
    def setUp(self):
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.folder = pathlib.Path(temporary.name)
        self.write({"path/mpirun": MPIRUN})
        environment = {"PATH": f"{self.folder}/path:/usr/bin:/bin", "TRIREME_DATA": ""}
        patch = mock.patch.dict(os.environ, environment)
        patch.start()
        self.addCleanup(patch.stop)
        self.addCleanup(signal.signal, signal.SIGTERM, signal.getsignal(signal.SIGTERM))

    def write(self, programs):
        for name, text in programs.items():
            path = self.folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
            path.chmod(0o755)

    def report(self, *arguments, python="none"):
        """Its exit code, its output, its Markdown, its HTML."""
        printed = io.StringIO()
        python = self.folder / python
        output = self.folder / "out"
        with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(printed):
            code = main([*arguments, "--python", str(python), "--programs", str(self.folder / "ours"), "--output", str(output)])
        name = "against" if "--against" in arguments else "report"
        return code, printed.getvalue(), (output / f"{name}.md").read_text(), (output / f"{name}.html").read_text()

    def test_rows_stand_on_both_pages_and_missing_peers_are_named(self):
        self.write({"ours/lstm_benchmark": takes_turns(**LSTM), "ours/gpt_quality": prints(mllog())})
        code, printed, text, page = self.report("--only", "recurrent,gpt quality,cnn quality")
        self.assertEqual(code, 0, printed)
        self.assertIn(f"PyTorch of {self.folder}/none: not found, skipped", text)
        self.assertIn("| LSTM beside oneDNN's | oneDNN's own LSTM primitive | 500 ms | 750 ms | 1.500 times the speed | "
                      "1.500 to 1.500 | 15 |", text)
        self.assertNotIn("beside PyTorch", text)
        self.assertIn("Target 1.8 reached: 1.7 after 50 steps, 7.5 s.", text)
        self.assertIn("| gpt_text | 1.8 | yes | 1.7 | 7.5 s | 50 |", text)
        self.assertIn("MNIST: not found, skipped; TRIREME_DATA", text)
        self.assertRegex(printed, r"recurrent \.\.\. \d+ s")
        for row in ("LSTM beside oneDNN&#x27;s", "gpt_text: quality over seconds", "<svg", "MNIST: not found"):
            self.assertIn(row, page)
        html.parser.HTMLParser().feed(page)
        self.assertNotRegex(page, r"https?://|src=|@import|url\(")
        self.assertEqual((self.folder / "out" / "gpt_text.mllog").read_text().strip(), mllog())

    def test_the_fastest_way_of_the_peer_is_taken_and_all_are_named(self):
        def peer(seconds):
            return takes_turns(step=seconds, memory=1 << 21)

        self.write({"ours/gpt_step": takes_turns(step=1.0, floor=0.8, memory=1 << 20), "compiled": peer(2.0),
                    "eager": peer(9.0), "python": f"""#!/bin/sh
test "$1" = -c && {{ echo 9.1; echo /torch; exit; }}
case "$*" in *--compile*) exec {self.folder}/compiled "$@";; *--fused*) echo no fused AdamW; exit 3;; esac
exec {self.folder}/eager "$@"
"""})
        code, printed, text, _ = self.report("--only", "gpt bf16", "--pairs", "6", python="python")
        self.assertEqual(code, 0, printed)
        self.assertIn("| gpt bf16 beside PyTorch | PyTorch 9.1, compiled, fused AdamW | 1 s | 2 s | 2.000 times the speed |",
                      text)
        self.assertIn("| gpt bf16 beside its floor | its products alone, oneDNN | 1 s | 800 ms | 1.250 times the time |", text)
        self.assertIn("| PyTorch 9.1, eager | 9 s |", text)
        self.assertIn('| PyTorch 9.1, eager, fused AdamW | PyTorch 9.1, eager, fused AdamW, ended with exit code 3', text)
        self.assertIn("ours 1 MiB, PyTorch 9.1, compiled, fused AdamW 2 MiB: 0.50 times as much", text)

    def test_what_this_processor_does_not_have_is_left_out_by_name(self):
        self.write({"ours/gpt_step": takes_turns(step=1.0, floor=None, peak=0.5, memory=1 << 20)})
        code, printed, text, _ = self.report("--only", "gpt fp32", "--pairs", "6")
        self.assertEqual(code, 0, printed)
        self.assertIn("gpt fp32 beside its floor: gpt_step cannot measure that on this processor", text)
        self.assertNotIn("| gpt fp32 beside its floor |", text)
        self.assertIn("| gpt fp32, share of the FMA peak |", text)

    def test_a_program_that_fails_is_shown_and_loses_no_other_row(self):
        self.write({"ours/lstm_benchmark": takes_turns(**LSTM), "ours/sharded_step": prints("no space left", 3),
                    "ours/optimizer_benchmark": "#!/bin/sh\necho ouch\nkill -SEGV $$\n"})
        code, printed, text, page = self.report("--only", "recurrent,sharded step,optimizers,all-reduce", "--pairs", "6")
        self.assertEqual(code, 1, printed)
        for shown in (printed, text, page):
            self.assertIn("ended with exit code 3", shown)
            self.assertIn("no space left", shown)
            self.assertIn("was ended by SIGSEGV", shown)
            self.assertIn("ouch", shown)
        self.assertIn("allreduce is missing: build it", text)
        self.assertIn("| LSTM beside oneDNN's |", text)

    def test_who_interrupts_it_keeps_what_was_measured(self):
        self.write({"ours/lstm_benchmark": takes_turns(**LSTM),
                    "ours/sharded_step": "#!/bin/sh\nkill -TERM $PPID\nexec sleep 60\n"})
        code, printed, text, _ = self.report("--only", "recurrent,sharded step,operations", "--pairs", "6")
        self.assertEqual(code, 130, printed)
        self.assertIn("| sharded step | interrupted |", text)
        self.assertIn("| operations | interrupted |", text)
        self.assertIn("| LSTM beside oneDNN's |", text)

    def test_what_does_not_fit_into_the_time_is_skipped_by_name(self):
        self.write({"ours/lstm_benchmark": takes_turns(**LSTM)})
        code, printed, text, _ = self.report("--only", "recurrent", "--minutes", "0.1")
        self.assertEqual(code, 0, printed)
        self.assertIn("| recurrent | skipped: it needs 15 s, its share of the time is 6 s; raise --minutes |", text)

    def test_few_pairs_have_no_interval(self):
        self.write({"ours/lstm_benchmark": takes_turns(**LSTM)})
        self.assertIn("- (fewer than 6 pairs) | 3 |", self.report("--only", "recurrent", "--pairs", "3")[2])

    def test_a_target_that_is_not_reached_is_no_success(self):
        self.write({"ours/gpt_quality": prints(mllog("aborted"))})
        code, printed, text, _ = self.report("--only", "gpt quality")
        self.assertEqual(code, 1, printed)
        self.assertIn("Target 1.8 NOT REACHED: 1.7 after 50 steps", text)

    def test_names_that_do_not_exist_are_refused(self):
        with self.assertRaises(SystemExit), contextlib.redirect_stderr(io.StringIO()) as printed:
            main(["--only", "gtp fp32"])
        self.assertIn("there are gpt fp32, gpt bf16", printed.getvalue())

    def test_a_checkout_that_takes_five_percent_longer_is_named(self):
        self.write({"ours/gpt_step": writes(step_seconds=1.05, floor_seconds=9.0),
                    "ours/lstm_benchmark": writes(lstm_seconds=0.1),
                    "before/build/release/bin/gpt_step": writes(step_seconds=1.0, floor_seconds=1.0),
                    "before/build/release/bin/lstm_benchmark": writes(lstm_seconds=0.1)})
        arguments = ["--against", str(self.folder / "before"), "--only", "gpt step fp32,recurrent"]
        code, printed, text, page = self.report(*arguments)
        self.assertEqual(code, 1, printed)
        self.assertIn("slower: gpt step fp32: step_seconds; unclear: 0 of 2\n", printed)
        self.assertIn("| gpt step fp32: step_seconds | slower | 1.050 | 1.0", text)
        self.assertIn("| recurrent: lstm_seconds | same | 1.000 |", text)
        self.assertIn("Slower: gpt step fp32: step_seconds. Unclear: 0 of 2 figures.\n", text)
        self.assertIn("covers 96.5 %", text)
        self.assertNotIn("floor_seconds", text)
        self.assertIn("gpt step fp32: step_seconds", page)
        self.write({"ours/gpt_step": writes(step_seconds=1.0)})
        self.assertEqual(self.report(*arguments)[0], 0)

    def test_a_program_that_fails_in_one_checkout_is_no_success(self):
        self.write({"ours/gpt_step": prints("wrong option", 105), "before/bin/gpt_step": writes(step_seconds=1.0),
                    "ours/lstm_benchmark": writes(lstm_seconds=0.1), "before/bin/lstm_benchmark": writes(lstm_seconds=0.1)})
        code, printed, text, _ = self.report("--against", str(self.folder / "before"), "--only", "gpt step fp32,recurrent")
        self.assertEqual(code, 2, printed)
        self.assertIn("gpt step fp32: ours ended with exit code 105", text)
        self.assertIn("wrong option", text)
        self.assertIn("| recurrent: lstm_seconds | same |", text)

    def test_what_only_one_checkout_measures_is_named(self):
        self.write({"ours/lstm_benchmark": writes(lstm_seconds=0.1, gru_seconds=0.2),
                    "before/bin/lstm_benchmark": writes(lstm_seconds=0.1)})
        code, printed, text, _ = self.report("--against", str(self.folder / "before"), "--only", "recurrent")
        self.assertEqual(code, 0, printed)
        self.assertIn("recurrent: only ours write gru_seconds\n", text)

    def test_two_results_are_compared_by_their_spreads(self):
        def result(folder, seconds):
            row = {"name": "LSTM", "theirs": "x", "ratio": "speed", "pairs": [[seconds * (1 + 0.001 * i), 1] for i in range(9)]}
            (self.folder / folder).mkdir()
            report = {"machine": [["cpu", folder]], "results": [{"rows": [row]}]}
            (self.folder / folder / "report.json").write_text(json.dumps(report))

        result("out", 1.1)
        result("earlier", 1.0)
        code, printed, text, _ = self.report("--against", str(self.folder / "earlier"))
        self.assertEqual(code, 1, printed)
        self.assertIn("weaker", printed)
        self.assertIn("| LSTM | slower | 1.100 |", text)


class Mllog(unittest.TestCase):
    def test_a_run_that_does_not_reach_its_target_says_so(self):
        self.assertEqual(quality.quality_of(mllog("aborted"))["status"], "aborted")

    def test_broken_lines_and_incomplete_logs_are_failures(self):
        for log in (":::MLLOG {", mllog().replace("run_stop", "run_step"), ""):
            with self.assertRaises(Failure):
                quality.quality_of(log)

    @unittest.skipUnless((BUILT / "gpt_quality").exists(), "gpt_quality was not built beside this test")
    def test_what_the_program_prints_is_read(self):
        with tempfile.TemporaryDirectory() as folder:
            text = pathlib.Path(folder) / "text"
            text.write_text("all work and no play " * 200)
            run = subprocess.run([BUILT / "gpt_quality", "--text", text, "--most-steps", "1", "--batch", "2"], check=True,
                                 capture_output=True, text=True)
            found = quality.quality_of(run.stdout)
            self.assertEqual((found["status"], found["steps"]), ("aborted", 1))
            if importlib.util.find_spec("mlperf_logging") is None:
                self.skipTest("mlperf_logging is not installed: the lines were read by ours alone")
            from mlperf_logging.compliance_checker import mlp_parser

            log = pathlib.Path(folder) / "log"
            log.write_text(run.stdout)
            lines, failed = mlp_parser.parse_file(log, ruleset="5.1.0")
            self.assertEqual(failed, [])
            self.assertEqual(len(lines), run.stdout.count(":::MLLOG"))


if __name__ == "__main__":
    unittest.main()
