#include "checkpoint_model.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <set>
#include <span>
#include <thread>

#include "trireme/checkpoint/checkpoint_reader.hpp"
#include "trireme/checkpoint/checkpoints.hpp"
#include "trireme/checkpoint/claim.hpp"
#include "trireme/core/error.hpp"

using namespace trireme;
using checkpoint::CheckpointReader;

namespace {

constexpr const char* model_prefix = "model.";
constexpr std::int64_t none = -1;

// The path of a checkpoint's folder without symbolic links, "." and "..".
Location real_folder(const Location& checkpoint) { return file_system_of(checkpoint)->real(checkpoint); }

Location run_of(const Location& checkpoint) { return real_folder(checkpoint).parent(); }

std::int64_t setting_of(const CheckpointReader& reader, const char* name) {
  const auto& settings = reader.manifest().configuration;
  const auto found = settings.find(name);
  require(found != settings.end(), "{} lacks the setting {} of train_gpt", reader.folder().string(), name);
  return std::stoll(found->second);
}

// Returns the value of rank 0 on all ranks.
std::int64_t from_first(const Group& world, std::int64_t value) {
  std::array<std::int64_t, 1> values{value};
  world.broadcast(std::span(values), 0, "step of a checkpoint").wait_on_host();
  return values[0];
}

// Looks for checkpoints on rank 0.
class Steps {
 public:
  explicit Steps(Location run) : run_(std::move(run)), watch_(run_) {}

  // The newest step above `after`. If `waits`, waits for one while a job may save it. `none`: there is none.
  std::int64_t next(std::int64_t after, bool waits) {
    for (;; std::this_thread::sleep_for(std::chrono::milliseconds(200))) {
      const bool held = waits && watch_.is_held();  // checked before looking, so that the job's last checkpoint is found
      const auto steps = checkpoint::committed_steps(run_);
      if (!steps.empty() && steps.back() > after) return steps.back();
      if (!held) return none;
    }
  }

 private:
  Location run_;
  checkpoint::ClaimWatch watch_;
};

}  // namespace

bool is_checkpoint(const Location& path) { return is_there(path / "manifest.json"); }

bool is_run(const Location& path) {
  if (!is_folder(path) || is_there(path / "config.json") || is_checkpoint(path)) return false;
  return !checkpoint::committed_steps(path).empty() || checkpoint::ClaimWatch(path).is_held();
}

Location description_of(const Location& checkpoint) {
  const Location description = run_of(checkpoint) / "model";
  if (is_there(description / "config.json")) return description;
  const CheckpointReader reader(checkpoint);
  const auto program = reader.manifest().configuration.find("program");
  if (program != reader.manifest().configuration.end() && program->second == "train_gpt") return {};
  throw Error({.code = ErrorCode::invalid_argument,
               .message = "the checkpoint does not say which model it holds",
               .path = checkpoint.string(),
               .hint = "checkpoints of train_lm, train_vit and train_gpt do; for others give a folder of transformers"});
}

models::GptOptions gpt_options_of(const Location& checkpoint) {
  const CheckpointReader reader(checkpoint);
  const auto* embedding = reader.find("model.transformer.wte.weight");
  require(embedding != nullptr && embedding->shape.size() == 2, "{} holds no GPT of train_gpt", checkpoint.string());
  return {.layers = static_cast<int>(setting_of(reader, "layers")),
          .heads = static_cast<int>(setting_of(reader, "heads")),
          .width = setting_of(reader, "width"),
          .block = setting_of(reader, "block"),
          .vocabulary = embedding->shape[0]};
}

void load_checkpoint(Model& model, const Location& checkpoint, const Group& world) {
  State state;
  model.store().add_to(state, model_prefix);
  const auto compare = [&] {
    const CheckpointReader reader(checkpoint);
    std::set<std::string> wanted;
    for (const StateTensor& tensor : state.tensors()) wanted.insert(tensor.name);
    for (const auto& tensor : reader.manifest().tensors) {
      if (!tensor.name.starts_with(model_prefix) || tensor.optional || wanted.contains(tensor.name)) continue;
      throw Error(
          {.code = ErrorCode::invalid_argument,
           .message = "the checkpoint holds a tensor that the described model does not have",
           .name = tensor.name,
           .path = checkpoint.string(),
           .hint = "for a run with adapters, use the folder that --save-adapter writes, and the model that it was trained on"});
    }
  };
  world.agree(compare, "compare a checkpoint with its model");
  checkpoint::Checkpoints(world, {.directory = run_of(checkpoint)})
      .load_folder(real_folder(checkpoint).name(), state, {.whole = false});
}

void for_each_model(const Group& world, const Location& path, bool watch,
                    const std::function<void(const Location& folder, std::optional<std::int64_t> step)>& body) {
  bool run = false;
  const auto look = [&] { run = world.rank() == 0 && is_run(path); };
  world.agree(look, "look for checkpoints");
  if (from_first(world, run ? 1 : 0) == 0) {
    require(!watch, "--watch needs a directory of checkpoints, and {} is not one", path.string());
    return body(path, {});
  }
  std::optional<Steps> steps;
  if (world.rank() == 0) steps.emplace(path);
  std::int64_t done = none;
  do {
    std::int64_t step = none;
    world.agree([&] { step = steps ? steps->next(done, watch) : none; }, "look for checkpoints");
    step = from_first(world, step);
    require(step != none || done != none, "{} holds no checkpoint", path.string());
    if (step == none) return;
    const Location folder = checkpoint::checkpoint_folder(path, step);
    try {
      body(folder, step);
    } catch (const Error& error) {
      const bool of_file = error.code() == ErrorCode::io || error.code() == ErrorCode::corrupt_file ||
                           error.code() == ErrorCode::invalid_argument;
      // The job keeps only its newest checkpoints, and may have removed this one.
      if (!of_file || is_there(folder / "manifest.json")) throw;
      continue;
    }
    done = step;
  } while (watch || done == none);
}

std::string with_step(const std::string& line, std::optional<std::int64_t> step) {
  return step ? fmt::format("{{\"step\":{},{}", *step, line.substr(1)) : line;
}
