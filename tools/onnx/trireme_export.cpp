// Writes models for other runtimes. See trireme-export --help and docs/onnx.md.

#include <fmt/format.h>

#include <cstdio>

#include "command_line.hpp"
#include "export_folder.hpp"

using namespace trireme;

int main(int argc, char** argv) {
  FolderExport options;
  CLI::App app("Writes models for other runtimes.", "trireme-export");
  app.require_subcommand(1);
  CLI::App* to_onnx = app.add_subcommand("onnx", "writes a model in a folder of transformers to an ONNX file, opset 17");
  to_onnx->add_option("--model", options.folder, "folder with config.json and model.safetensors")->required();
  CLI::Option* checkpoint = to_onnx->add_option(
      "--checkpoint", options.checkpoint,
      "a directory of checkpoints of this model, or a folder in it: its weights replace those of the folder");
  to_onnx->add_option("--adapter", options.adapter, "folder of a LoRA adapter, as PEFT saves it; it is merged into the weights")
      ->excludes(checkpoint);
  to_onnx->add_option("--output", options.output, "file to write, such as model.onnx")->required();
  add_number(*to_onnx, "--external-data-above", options.external_data_above,
             "weights of more bytes than this go to a file of their own, with the name of the output and .data")
      ->check(at_least(0));
  if (const auto code = parse_command_line(app, argc, argv)) return *code;
  return run_tool(app.get_name(), [&] {
    const onnx::Exported exported = export_folder(options);
    fmt::print("{}: {} nodes, {} weights of {} bytes{}\n", options.output, exported.nodes, exported.weights,
               exported.weight_bytes, exported.external_data ? " in " + options.output + ".data" : "");
    return 0;
  });
}
