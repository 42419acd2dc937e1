"""The table of comparisons. A comparison is one program of ours, what it is compared with, and a row for each ratio."""

import dataclasses
from typing import Callable, Optional

from . import pytorch

# Kinds of ratio: the other side's time / ours, ours / the other side's, or the first one as a share.
SPEED, TIME, SHARE = "speed", "time", "share"


@dataclasses.dataclass(frozen=True)
class Row:
    name: str
    theirs: str  # in words; "": the peer's own label
    ours_asked: str
    theirs_asked: str
    ratio: str = SPEED
    of_peer: bool = False  # the peer measures `theirs`, not our own program


@dataclasses.dataclass(frozen=True)
class Comparison:
    name: str  # for --only
    question: str
    program: str
    arguments: tuple = ()
    ranks: int = 1
    wanted_seconds: float = 60  # of the budget; unused time goes to the others
    least_seconds: float = 10  # with less it is skipped


@dataclasses.dataclass(frozen=True)
class InTurns(Comparison):
    """The program, and the peer if there is one, measure in turn, round by round."""

    rows: tuple = ()
    peer: Optional[pytorch.Peer] = None
    memory: bool = False  # both report their memory


@dataclasses.dataclass(frozen=True)
class ByItself(Comparison):
    """The program takes the turns itself and writes both sides of every round; {pairs} in its arguments is the number of rounds.
    rows_of(figures) gives (name, theirs, our seconds, their seconds, ratio) for each row."""

    rows_of: Callable = None


@dataclasses.dataclass(frozen=True)
class Shares(Comparison):
    """The program measures many operations and the ceilings of the machine, and is run several times."""

    runs: int = 7


@dataclasses.dataclass(frozen=True)
class ToQuality(Comparison):
    """The program trains to a given quality and prints MLPerf's lines."""

    data: str = "text"  # the kind of its data: or "mnist"


def training_step(name, question, program, script, ways, precision, peak):
    arguments = (f"--precision={precision}",)
    rows = [Row(f"{name} beside PyTorch", "", "step", "step", SPEED, of_peer=True),
            Row(f"{name} beside its floor", "its products alone, oneDNN", "step", "floor", TIME)]
    if peak:
        rows.append(Row(f"{name}, share of the FMA peak", "fused multiply-adds in registers", "step", "peak", SHARE))
    return InTurns(name, question, program, arguments, ranks=2, wanted_seconds=240, least_seconds=40, rows=tuple(rows),
                   peer=pytorch.Peer(script, ways, arguments, ranks=2), memory=True)


FUNCTIONS = ("add", "add_row", "add_column", "exp", "where", "expression", "sum_first", "sum_middle", "sum_last", "max_first",
             "max_last", "var_last", "cumsum", "cat", "permute", "transpose", "flip", "gather", "index_select")
FUNCTION_SIZES = (4 << 10, 256 << 10, 16 << 20)


def functions(name, ways, wanted_seconds, least_seconds, copies):
    rows = [Row(f"{function} of {size_of(size)} beside PyTorch", "", f"{function}.{size}", f"{function}.{size}", SPEED, of_peer=True)
            for size in FUNCTION_SIZES for function in FUNCTIONS]
    if copies:
        largest = FUNCTION_SIZES[-1]
        rows += [Row(f"{function} of {size_of(largest)} beside copying", "memcpy of as many bytes", f"{function}.{largest}",
                     f"{function}.{largest}.copy", SHARE) for function in FUNCTIONS]
    return InTurns(name, "functions on tensors, each result allocated by its call, one thread", "functions_benchmark",
                   wanted_seconds=wanted_seconds, least_seconds=least_seconds, rows=tuple(rows),
                   peer=pytorch.Peer("functions_torch.py", ways))


def optimizer_rows():
    rows = [Row(f"{name} beside PyTorch", "", name, name, SPEED, of_peer=True)
            for name in ("adamw", "nadam", "radam", "adadelta", "adafactor")]
    for name in ("sgd", "adam", "adamw", "adamw_8bit", "lamb", "lars", "rmsprop", "adagrad", "lion", "nadam", "radam", "adadelta",
                 "adafactor", "schedule_free_adamw"):
        rows.append(Row(f"{name} beside copying", "memcpy of as many bytes", name, f"{name}.copy", SHARE))
    rows.append(Row("adamw beside changing in place", "as many bytes, times a number", "adamw", "adamw.in_place", SHARE))
    return tuple(rows)


def size_of(count):
    for factor, unit in ((1 << 20, "MiB"), (1 << 10, "KiB")):
        if count >= factor:
            return f"{count // factor} {unit}"
    return f"{count} B"


def allreduce_rows(figures):
    for size in figures:
        rounds, name = size["rounds"], size_of(size["bytes"])
        yield f"all-reduce of {name} beside MPI", "MPI_Allreduce", rounds["group"], rounds["mpi"], SPEED
        yield (f"all-reduce of {name} beside the memory", "the same loads and stores alone", rounds["group"], rounds["limit"],
               SHARE)


def sharded_rows(figures):
    rounds = figures["rounds"]
    yield "sharded step beside replicated", "all-reduce and replicated AdamW", rounds["sharded"], rounds["replicated"], TIME


def checkpoint_rows(figures):
    rounds = figures["rounds"]
    yield "checkpoint: save beside a plain file", "write and sync", rounds["save"], rounds["write"], SHARE
    yield "checkpoint: load beside a plain file", "read, page cache emptied", rounds["load"], rounds["read"], SHARE


COMPARISONS = (
    training_step("gpt fp32", "a training step of a GPT of 10.9M parameters, 2 ranks x 1 thread", "gpt_step", "gpt_torch.py",
                  pytorch.GPT_WAYS, "fp32", peak=True),
    training_step("gpt bf16", "the same in mixed bfloat16", "gpt_step", "gpt_torch.py", pytorch.GPT_WAYS, "bf16", peak=False),
    training_step("resnet fp32", "a training step of ResNet-18 on images of 32 x 32, 2 ranks x 1 thread", "resnet_step",
                  "resnet_torch.py", pytorch.RESNET_WAYS, "fp32", peak=True),
    training_step("resnet bf16", "the same in mixed bfloat16", "resnet_step", "resnet_torch.py", pytorch.RESNET_WAYS, "bf16",
                  peak=False),
    InTurns("recurrent", "forward and backward of two layers of LSTM and of GRU, one thread", "lstm_benchmark",
            wanted_seconds=90, least_seconds=15, peer=pytorch.Peer("lstm_torch.py", pytorch.ONE_WAY),
            rows=(Row("LSTM beside PyTorch", "", "lstm", "lstm", SPEED, of_peer=True),
                  Row("GRU beside PyTorch", "", "gru", "gru", SPEED, of_peer=True),
                  Row("LSTM beside oneDNN's", "oneDNN's own LSTM primitive", "lstm", "onednn", SPEED))),
    InTurns("optimizers", "a step over 42M parameters, one thread", "optimizer_benchmark", ("--layers=6",), wanted_seconds=90,
            least_seconds=15, peer=pytorch.Peer("optimizer_torch.py", pytorch.OPTIMIZER_WAYS, ("--layers=6",)),
            rows=optimizer_rows()),
    InTurns("muon", "a step over 3.2M parameters, one thread", "optimizer_benchmark", ("--layers=1", "--width=512"),
            wanted_seconds=30, least_seconds=15,
            peer=pytorch.Peer("optimizer_torch.py", pytorch.ONE_WAY, ("--layers=1", "--width=512")),
            rows=(Row("muon beside PyTorch", "", "muon", "muon", SPEED, of_peer=True),)),
    functions("functions", pytorch.ONE_WAY, 60, 15, copies=True),
    functions("functions compiled", pytorch.COMPILED, 300, 240, copies=False),
    ByItself("all-reduce", "a sum over two ranks of one machine", "allreduce",
             ("--least-bytes=4096", f"--most-bytes={64 << 20}", "--rounds={pairs}"), ranks=2, wanted_seconds=60,
             least_seconds=20, rows_of=allreduce_rows),
    ByItself("sharded step", "what follows the backward pass of 85M parameters, two ranks", "sharded_step",
             ("--rounds={pairs}",), ranks=2, wanted_seconds=30, least_seconds=10, rows_of=sharded_rows),
    ByItself("checkpoint", "200 MB, two ranks, on the disk of the page", "checkpoint_benchmark",
             ("--megabytes=200", "--rounds={pairs}", "--directory={folder}"), ranks=2, wanted_seconds=60, least_seconds=15,
             rows_of=checkpoint_rows),
    ToQuality("gpt quality", "seconds to a stated validation loss, 2 ranks x 1 thread", "gpt_quality", ranks=2,
              wanted_seconds=90, least_seconds=30, data="text"),
    ToQuality("cnn quality", "seconds to a stated accuracy on MNIST's test images, 2 ranks x 1 thread", "cnn_quality", ranks=2,
              wanted_seconds=90, least_seconds=30, data="mnist"),
    Shares("operations", "the operations of a GPT and of a ResNet, one thread", "ops_benchmark",
           ("--seconds=0.02", "--calls=3"), wanted_seconds=120, least_seconds=20),
)
