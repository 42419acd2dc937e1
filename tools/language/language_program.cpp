#include "language_program.hpp"

#include "launched_program.hpp"
#include "trireme/core/exit_code.hpp"

using namespace trireme;

void LanguageOptions::add_to(CLI::App& app) {
  app.add_option("FOLDER", folder,
                 "a model in a folder of transformers, with config.json and model.safetensors; a checkpoint of train_lm, "
                 "train_gpt or train_vit; or a directory of checkpoints, of which the newest is used")
      ->required();
  app.add_flag("--watch", watch, "also use each checkpoint that a job saves in FOLDER from now on, until the job ends");
  app.add_option("--adapter", adapter, "a folder of PEFT; its LoRA adapter is merged into the model");
  app.add_option("--tokens", tokens, "text; or number: texts are given as numbers of tokens")
      ->check(CLI::IsMember({"text", "number"}))
      ->capture_default_str();
  app.add_option(
      "--tokenizer", tokenizer,
      "another folder, or its tokenizer.json or tokenizer.model; or byte: every byte is a token; not given: that of FOLDER, "
      "or byte");
  app.add_option("--precision", precision, "type to compute with")
      ->check(CLI::IsMember({"fp32", "bf16", "fp16"}))
      ->capture_default_str();
  app.add_option("--device", device, "device to compute on")->check(CLI::IsMember({"cpu", "cuda"}))->capture_default_str();
}

int launch_language_program(CLI::App& app, int argc, char** argv, const LanguageOptions& options,
                            const std::function<void(const Group&)>& main) {
  return launch_program(
      app, argc, argv, [&] { return options.device == "cuda" ? BackendKind::nccl : BackendKind::mpi; },
      [&](const Group& world) {
        main(world);
        return static_cast<int>(ExitCode::success);
      });
}

ModelContext divided_by_all(const Group& world) {
  return parallel::model_context(ProcessMesh(world, {.data = 1, .tensor = world.size()}));
}
