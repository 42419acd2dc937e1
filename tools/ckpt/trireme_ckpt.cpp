// Inspects, compares, exports and imports checkpoints. See trireme-ckpt --help and docs/checkpoints.md.

#include "command_line.hpp"
#include "commands.hpp"

using namespace trireme;

int main(int argc, char** argv) {
  CLI::App app(
      "Looks into checkpoints. RUN is a directory of checkpoints, of which the newest is taken, or one of its folders,\n"
      "run1/step-000000500; DIR is a directory of checkpoints.",
      "trireme-ckpt");
  app.require_subcommand(1);
  std::string path;
  std::string other;
  std::vector<std::string> runs;
  ckpt::ExportOptions options;
  int keep = 1;

  CLI::App* list = app.add_subcommand("list", "the checkpoints of DIR: step, date, loss and program, and the options");
  list->add_option("DIR", path, "directory of checkpoints")->required();
  CLI::App* inspect = app.add_subcommand("inspect", "options, values and tensors of RUN");
  inspect->add_option("RUN", path, "checkpoint")->required();
  CLI::App* verify =
      app.add_subcommand("verify", "reads each RUN completely; a damaged one gives exit code 1 and a line for each damage");
  verify->add_option("RUN", runs, "checkpoints")->required();
  CLI::App* diff = app.add_subcommand("diff", "what differs between two RUNs; exit code 1 if something does");
  diff->add_option("FIRST", path, "RUN")->required();
  diff->add_option("SECOND", other, "RUN")->required();
  CLI::App* exporting = app.add_subcommand("export", "writes the weights of RUN into a safetensors FILE");
  exporting->add_option("RUN", options.run, "checkpoint")->required();
  exporting->add_option("FILE", options.file, "safetensors file")->required();
  exporting
      ->add_option("--prefix", options.prefix,
                   "export the tensors whose names begin with it; the file has the names without it")
      ->capture_default_str();
  exporting->add_option("--format", options.format, "huggingface: GPT-2 as transformers reads it; plain: as they are")
      ->check(CLI::IsMember({"huggingface", "plain"}))
      ->capture_default_str();
  CLI::App* importing = app.add_subcommand(
      "import", "makes a checkpoint of step 0 of the weights in FILE, from which train_gpt --checkpoint-dir DIR goes on");
  importing->add_option("FILE", path, "safetensors file of a GPT-2 as transformers writes it")->required();
  importing->add_option("DIR", other, "directory without checkpoints; created if it is missing")->required();
  CLI::App* prune = app.add_subcommand("prune", "removes all but the newest checkpoints of DIR, and those put aside");
  prune->add_option("DIR", path, "directory of checkpoints that no job uses")->required();
  add_number(*prune, "--keep", keep, "checkpoints that stay; 1 or more")->check(at_least(1));
  CLI::App* clean = app.add_subcommand("clean", "removes the unfinished checkpoints that killed jobs left in DIR");
  clean->add_option("DIR", path, "directory of checkpoints that no job uses")->required();
  if (const auto code = parse_command_line(app, argc, argv)) return *code;
  return run_tool(app.get_name(), [&] {
    if (*list) return ckpt::list(path);
    if (*inspect) return ckpt::inspect(path);
    if (*verify) return ckpt::verify(runs);
    if (*diff) return ckpt::diff(path, other);
    if (*exporting) return ckpt::export_weights(options);
    if (*importing) return ckpt::import_weights(path, other);
    if (*clean) return ckpt::clean(path);
    return ckpt::prune(path, keep);
  });
}
