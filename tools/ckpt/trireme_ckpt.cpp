// Looks into checkpoints, compares, exports and imports them: trireme-ckpt --help, docs/checkpoints.md.

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>

#include "commands.hpp"
#include "trireme/core/error.hpp"

using namespace trireme;

int main(int argc, char** argv) {
  CLI::App app("Looks into checkpoints. FOLDER is one of them, run1/step-000000500; DIR the directory they lie in, run1.");
  app.require_subcommand(1);
  std::string path;
  std::string other;
  std::vector<std::string> folders;
  ckpt::ExportOptions options;
  int keep = 1;

  CLI::App* inspect = app.add_subcommand("inspect", "lists the checkpoints of DIR, or what lies in FOLDER");
  inspect->add_option("PATH", path, "DIR or FOLDER")->required();
  CLI::App* verify = app.add_subcommand("verify", "reads all of each FOLDER; exit code 1 and a line for each damage");
  verify->add_option("FOLDER", folders, "checkpoints")->required();
  CLI::App* diff = app.add_subcommand("diff", "what differs between two FOLDERs; exit code 1 if something does");
  diff->add_option("FIRST", path, "FOLDER")->required();
  diff->add_option("SECOND", other, "FOLDER")->required();
  CLI::App* exporting = app.add_subcommand("export", "writes the weights of FOLDER into a safetensors FILE");
  exporting->add_option("FOLDER", options.folder, "checkpoint")->required();
  exporting->add_option("FILE", options.file, "safetensors file")->required();
  exporting->add_option("--prefix", options.prefix, "of the names to export, which the file leaves out")->capture_default_str();
  exporting->add_option("--format", options.format, "huggingface: GPT-2 as transformers reads it; plain: as they are")
      ->check(CLI::IsMember({"huggingface", "plain"}))
      ->capture_default_str();
  CLI::App* importing = app.add_subcommand(
      "import", "makes a checkpoint of step 0 of the weights in FILE, from which train_gpt --checkpoint-dir DIR goes on");
  importing->add_option("FILE", path, "safetensors file of a GPT-2 as transformers writes it")->required();
  importing->add_option("DIR", other, "directory without checkpoints; made where it is missing")->required();
  CLI::App* prune =
      app.add_subcommand("prune", "removes all but the newest checkpoints of DIR, those put aside, and leftovers");
  prune->add_option("DIR", path, "directory of checkpoints that no job uses")->required();
  prune->add_option("--keep", keep, "checkpoints that stay; 1 or more")->capture_default_str();
  CLI11_PARSE(app, argc, argv);
  try {
    if (*inspect) return ckpt::inspect(path);
    if (*verify) return ckpt::verify(folders);
    if (*diff) return ckpt::diff(path, other);
    if (*exporting) return ckpt::export_weights(options);
    if (*importing) return ckpt::import_weights(path, other);
    return ckpt::prune(path, keep);
  } catch (const Error& error) {
    fmt::print(stderr, "trireme-ckpt: {}\n", error.what());
    return 2;
  }
}
