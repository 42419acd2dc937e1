"""Checks tests/reference: the index describes the files, each kind of fixture exists, and all files together are small."""

import json
import pathlib
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
FOLDER = ROOT / "tests" / "reference"
LARGEST = 8_000_000  # bytes of all fixtures together
KINDS = {
    "op",
    "functions",
    "optimizer_inputs",
    "optimizer",
    "clip",
    "lr_schedules",
    "grad_scaler",
    "amp_training",
    "casts",
    "model_init",
    "batches",
    "training_run",
    "parquet_rows",
    "pictures",
    "folders_of_transformers",
    "folders_of_peft",
    "folders_of_vit",
    "folders_of_bert",
    "folders_of_gpt",
    "tokenizers",
    "tokenizer_training",
    "conversations",
    "port",
    "port_weights",
    "pretrained_and_convergence",
    "accept_reject",
}
MODELS = {"gpt2", "lstm_lm", "cnn_mnist", "cnn_mnist_bn", "resnet_cifar", "gan_mlp", "gan_dc"}


def header_of(path):
    with path.open("rb") as file:
        length = int.from_bytes(file.read(8), "little")
        return json.loads(file.read(length))


class ReferenceSet(unittest.TestCase):

    @classmethod
    def setUpClass(cls):
        cls.index = json.loads((FOLDER / "index.json").read_text(encoding="utf-8"))

    def entries(self):
        return self.index["fixtures"] + self.index["other"]

    def test_has_every_kind_and_model(self):
        self.assertEqual({entry["kind"] for entry in self.entries()}, KINDS)
        self.assertEqual({entry["model"] for entry in self.index["fixtures"] if entry["kind"] == "training_run"}, MODELS)

    def test_names_are_unique_and_files_exist(self):
        names = [entry["id"] for entry in self.entries()]
        self.assertEqual(len(names), len(set(names)))
        for entry in self.entries():
            self.assertTrue((FOLDER / entry["file"]).is_file(), entry["file"])

    def test_headers_are_what_the_index_says(self):
        for entry in self.index["fixtures"]:
            if not entry["file"].endswith(".safetensors"):
                continue
            header = header_of(FOLDER / entry["file"])
            found = {name: (tensor["dtype"], tensor["shape"]) for name, tensor in header.items() if name != "__metadata__"}
            self.assertEqual(
                found, {name: (tensor["dtype"], tensor["shape"]) for name, tensor in entry["tensors"].items()}, entry["id"]
            )

    def test_no_file_is_left_over(self):
        described = {entry["file"] for entry in self.entries()}
        for entry in self.index["other"]:
            content = json.loads((FOLDER / entry["file"]).read_text(encoding="utf-8"))
            folder = pathlib.PurePosixPath(entry["file"]).parent
            described |= {str(folder / sample["file"]) for sample in content.get("samples", [])}
            for trained in content.values():
                if isinstance(trained, dict) and "pretrained" in trained:
                    described |= {trained["pretrained"]["file"], trained["pretrained"]["expected"]}
        found = {str(path.relative_to(FOLDER)) for path in FOLDER.glob("*/*") if path.suffix in (".safetensors", ".json")}
        self.assertEqual(found, described)

    def test_is_small(self):
        self.assertLess(sum(path.stat().st_size for path in FOLDER.rglob("*") if path.is_file()), LARGEST)


if __name__ == "__main__":
    unittest.main()
