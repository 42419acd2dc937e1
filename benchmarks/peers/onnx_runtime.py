"""Compares each NAME.onnx of a folder with the inputs and outputs in each NAME.*.safetensors, or with the results of transformers for the
folder that NAME.folder names, with its adapter if there is one.

Run by compare_onnx:
  python3 onnx_runtime.py folder --most 1e-5
"""

import argparse
import pathlib
import sys

import numpy
import onnx
import onnxruntime
from safetensors.numpy import load_file


SIZES = [(4, 13), (1, 1), (1, 17), (6, 2)]  # batch and length; all differ from those of the exports


def of_transformers(folder, session):
    """Inputs of several sizes, and the logits of transformers."""
    import torch  # pylint: disable=import-outside-toplevel
    import transformers  # pylint: disable=import-outside-toplevel

    transformers.utils.logging.set_verbosity_error()
    transformers.utils.logging.disable_progress_bar()
    config = transformers.AutoConfig.from_pretrained(folder)
    model = getattr(transformers, config.architectures[0]).from_pretrained(folder, dtype=torch.float32, attn_implementation="eager")
    if (pathlib.Path(folder) / "adapter_config.json").exists():
        assert hasattr(model, "peft_config"), "transformers read no adapter: it needs peft"
    model.eval()
    names = [port.name for port in session.get_inputs()]
    generator = torch.Generator().manual_seed(1)
    for batch, length in SIZES:
        if names == ["pixel_values"]:
            shape = (batch, config.num_channels, config.image_size, config.image_size)
            inputs = {"pixel_values": torch.randn(shape, generator=generator)}
        else:
            inputs = {"input_ids": torch.randint(0, config.vocab_size, (batch, length), generator=generator)}
            if "token_type_ids" in names:
                inputs["token_type_ids"] = torch.randint(0, config.type_vocab_size, (batch, length), generator=generator)
                lengths = torch.arange(length, length - 2 * batch, -2).clamp(min=1)
                inputs["attention_mask"] = (torch.arange(length)[None] < lengths[:, None]).long()
        with torch.no_grad():
            logits = model(**inputs).logits
        yield {name: value.numpy() for name, value in inputs.items()}, {"logits": logits.numpy()}


def stored(path, session):
    wide = {port.name for port in session.get_inputs() if port.type == "tensor(int64)"}
    for case in sorted(path.parent.glob(f"{path.stem}.*.safetensors")):
        tensors = load_file(case)
        inputs = {name: value.astype(numpy.int64) if name in wide else value for name, value in tensors.items()
                  if not name.startswith("out.")}
        yield inputs, {name.removeprefix("out."): value for name, value in tensors.items() if name.startswith("out.")}


def compare_case(session, inputs, wanted):
    """The largest difference relative to the largest element of an output, and whether the largest elements of all rows agree."""
    outputs = dict(zip(wanted, session.run(list(wanted), inputs)))
    rows = inputs.get("attention_mask")
    difference, same = 0, True
    for name, value in wanted.items():
        got = outputs[name]
        if got.shape != value.shape:
            sys.exit(f"the output {name} has the shape {got.shape}, not {value.shape}")
        if rows is not None and value.ndim == 3:  # outputs of padding differ and are ignored
            got, value = got[rows != 0], value[rows != 0]
        of_this = float(numpy.abs(got - value).max() / numpy.abs(value).max())
        difference = max(difference, of_this if numpy.isfinite(of_this) else 1.0)
        same = same and bool((got.argmax(-1) == value.argmax(-1)).all())
    return difference, same


def compare(path):
    onnx.checker.check_model(str(path), full_check=True)
    session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    folder = path.with_suffix(".folder")
    cases = list(of_transformers(folder.read_text(encoding="utf-8"), session) if folder.exists() else stored(path, session))
    results = [compare_case(session, inputs, wanted) for inputs, wanted in cases]
    difference, same = max(of for of, _ in results), all(of for _, of in results)
    initializers = onnx.load(str(path), load_external_data=False).graph.initializer
    weights = sum(numpy.prod(tensor.dims) * 4 for tensor in initializers if tensor.data_type == onnx.TensorProto.FLOAT)
    size = path.stat().st_size
    if path.with_name(path.name + ".data").exists():
        size += path.with_name(path.name + ".data").stat().st_size
    print(f"| {path.stem} | {len(cases)} | {difference:.1e} | {'the same' if same else 'ANOTHER'} | {weights / 1e6:.2f} MB | "
          f"{(size - weights) / 1e3:.1f} kB | {size / weights:.4f} |", flush=True)
    return difference if same else 1.0


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--most", type=float, default=1e-5)
    options = parser.parse_args()
    print(f"onnx {onnx.__version__}, onnxruntime {onnxruntime.__version__}\n")
    print("| model | sizes | relative difference | argmax | weights | graph | file / weights |")
    print("|---|---:|---:|---|---:|---:|---:|", flush=True)
    found = [compare(path) for path in sorted(options.folder.glob("*.onnx"))]
    print(f"\n{len(found)} models, the largest difference is {max(found):.1e}")
    sys.exit(0 if found and max(found) <= options.most else 1)


if __name__ == "__main__":
    main()
