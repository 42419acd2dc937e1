#include "adapter.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <span>
#include <sstream>
#include <vector>

#include "trireme/core/error.hpp"
#include "trireme/files/file_system.hpp"
#include "trireme/models/folders/adapter.hpp"
#include "trireme/nn/weights/lora.hpp"

using namespace trireme;
using trainer::Differs;

namespace {

// A text for the targets that does not depend on how they were spelled: all-linear, or names that all layers of this name
// share, or full names.
std::string targets_of(const Model& model) {
  std::map<std::string, std::vector<TargetableLayer::Part>> by_last_name;
  for (const TargetableLayer& layer : model.targetable()) {
    for (const auto& part : layer.parts) by_last_name[part.name.substr(part.name.rfind('.') + 1)].push_back(part);
  }
  bool are_all = true;
  std::vector<std::string> targets;
  for (const auto& [name, parts] : by_last_name) {
    if (std::ranges::all_of(parts, &TargetableLayer::Part::is_target)) {
      targets.push_back(name);
      continue;
    }
    are_all = false;
    for (const auto& part : parts) {
      if (part.is_target) targets.push_back(part.name);
    }
  }
  return are_all ? std::string(LoraOptions::all_linear) : fmt::format("{}", fmt::join(targets, ","));
}

}  // namespace

void AdapterRecipe::add_to(trainer::CommandLine& line, const std::string& init_of_model) {
  line.set_group("Adapters");
  constexpr Differs allowed = Differs::allowed;  // describe() compares the adapters themselves
  line.add("lora", rank, "train LoRA adapters of this rank and leave the weights of --init as they are; 0: train all weights",
           allowed);
  line.add("lora_alpha", alpha, "what adapters add is scaled by this and divided by the rank", allowed);
  line.add("lora_dropout", dropout, "of the input of adapters", allowed);
  line.add(
      "lora_targets", targets,
      "linear layers with adapters, by the names of transformers and with commas: q_proj,v_proj; or all-linear; not given: "
      "q_proj,v_proj, c_attn of a GPT-2, query_key_value of a GPT-NeoX; a BERT has none",
      allowed);
  line.add("lora_rank_stabilized", rank_stabilized, "divide by the root of the rank (rsLoRA)", allowed);
  line.add("adapter", init, "go on from the adapter in this folder of PEFT, with its rank and targets", allowed);
  line.add("save_adapter", save, "write the adapter to this folder, for PEFT", allowed);
  line.after_parsing([this, &line, &init_of_model] {
    require(rank >= 0, "--lora {} is below 0", rank);
    require(rank == 0 || init.empty(), "--lora {} and --adapter {}: the folder says what the adapter is like, leave --lora off",
            rank, init);
    require(!is_given() || !init_of_model.empty(), "--init is missing: an adapter is beside the weights of a model");
    require(save.empty() || is_given(), "--save-adapter {} needs an adapter: give --lora or --adapter", save);
    for (std::string name : {"lora_alpha", "lora_dropout", "lora_targets", "lora_rank_stabilized"}) {
      const bool is_idle = rank == 0 && line.given(name);
      std::ranges::replace(name, '_', '-');
      require(!is_idle || !init.empty(), "--{} needs --lora, the rank of the adapters", name);
      require(!is_idle, "--{} and --adapter {}: the folder says what the adapter is like, leave --{} off", name, init, name);
    }
  });
}

void AdapterRecipe::check_save(const trainer::Run& run, const std::string& save_of_model,
                               const std::string& init_of_model) const {
  const auto attempt = [&] {
    if (run.world().rank() != 0) return;
    if (!save_of_model.empty()) check_apart(save_of_model, init_of_model);
    if (save.empty()) return;
    const Location folder = save;
    require(is_folder(folder) || !is_there(folder), "--save-adapter {}: that is a file, and an adapter is a folder", save);
    require(!is_there(folder / "config.json"),
            "--save-adapter {}: a model lies there, to which transformers would add the adapter; name a folder of its own",
            save);
    try {
      file_system_of(folder)->create_folder(folder);
      const FileReplacement beside(folder / "adapter_model.safetensors");
    } catch (const std::exception& error) {
      throw Error({.code = ErrorCode::io,
                   .message = fmt::format("the adapter of --save-adapter could not be written there: {}", error.what()),
                   .path = save});
    }
  };
  run.world().agree(attempt, "try --save-adapter");
}

void AdapterRecipe::check_apart(const std::string& save_of_model, const std::string& init_of_model) const {
  require(!is_there(Location(save_of_model) / "adapter_config.json") && !is_same(save_of_model, save),
          "--save {}: the model would have an adapter beside it, which transformers adds to it; name a folder of its own",
          save_of_model);
  require(!is_given() || !is_same(save_of_model, init_of_model),
          "--save {}: the adapter is beside the model of --init, and would be merged into it; name another folder",
          save_of_model);
}

std::optional<LoraOptions> AdapterRecipe::options(const trainer::Run& run, const std::string& usual) const {
  std::optional<LoraOptions> options;
  run.world().agree([&] { options = read_options(usual); }, "read --adapter");
  return options;
}

void AdapterRecipe::describe(trainer::Run& run, const Model& model, const std::string& init_of_model) const {
  const std::optional<LoraOptions>& lora = model.context().lora;
  const std::string options =
      lora ? fmt::format("rank {}, scale {}, targets {}", lora->rank, lora->scale(), targets_of(model)) : "none";
  run.describe("lora_options", options, Differs::refused, "none");
  run.describe("adapter_dropout", fmt::format("{}", lora ? lora->dropout : 0.0), Differs::told, "0");
  run.describe("adapter_base", lora ? init_of_model : "none", Differs::told, "none");
}

std::optional<LoraOptions> AdapterRecipe::read_options(const std::string& usual) const {
  if (!is_given()) return std::nullopt;
  if (!init.empty()) return models::lora_options(init);
  LoraOptions options{.rank = rank, .alpha = alpha, .dropout = dropout, .rank_stabilized = rank_stabilized};
  std::istringstream names(targets.empty() ? usual : targets);
  for (std::string name; std::getline(names >> std::ws, name, ',');) options.targets.push_back(name);
  options.check();
  return options;
}

std::string AdapterRecipe::about_parameters(const trainer::Run& run, Model& model) const {
  FlatStore& store = model.store();
  std::string about = fmt::format("{} parameters", store.num_elements());
  if (!is_given()) return about;
  std::int64_t trained = 0;  // elements of whole parameters, of this rank's layers
  for (int index = 0; index < store.num_parameters(); ++index) {
    const ParameterInfo& parameter = store.parameter(index);
    if (nn::is_of_adapter(parameter.name)) trained += parameter.placement.shape.numel();
  }
  run.mesh().pipeline().all_reduce(std::span(&trained, 1)).wait_on_host();
  return about + fmt::format(", of which {} are trained", trained);
}

void AdapterRecipe::load(const trainer::Run& run, Model& model) const {
  if (!init.empty()) run.world().agree([&] { models::load_adapter(model, init); }, "read --adapter");
}

void AdapterRecipe::write(trainer::Run& run, Model& model, DType dtype, const std::string& base_model) const {
  if (save.empty()) return;
  const auto on_first_replica = [&] {
    if (run.mesh().data().rank() == 0) models::save_adapter(model, save, {.dtype = dtype, .base_model = base_model});
  };
  run.world().agree(on_first_replica, "write the adapter");
  run.note(fmt::format("adapter written to {}", save));
}
