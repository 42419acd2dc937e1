#include "training/recipe.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "trireme/core/error.hpp"
#include "trireme/files/file_system.hpp"

using namespace trireme;
using trainer::CommandLine;
using trainer::Differs;
using trainer::Run;

namespace {

// The help text of a beta option; its default is for the trainer's default optimizer.
std::string about_beta(const char* what, const std::optional<double>& beta, const std::string& optimizer) {
  if (!beta) return fmt::format("{}; not given: the optimizer's own", what);
  return fmt::format("{}; not given: {} for {}, else the optimizer's own", what, *beta, optimizer);
}

void check_beta(const char* name, const std::optional<double>& beta) {
  require(!beta || (*beta >= 0 && *beta < 1), "{} {} does not lie in [0, 1)", name, beta.value_or(0));
}

}  // namespace

void Recipe::add_to(CommandLine& line, const std::string& about_data) {
  line.set_group("Files");
  line.add("data", data, about_data, Differs::allowed);
  line.add("init", init, in_folders ? "start from the weights in this folder" : "start from these weights (safetensors)",
           Differs::allowed);
  line.add("save", save,
           in_folders ? "write the trained model to this folder" : "write the trained weights to this file (safetensors)",
           Differs::allowed);
  line.set_group("Optimizer");
  line.add("optimizer", optimizer, optim::optimizer_names(), "what updates the weights");
  line.add("learning_rate", optimizer_options.learning_rate, "highest learning rate", Differs::told);
  line.add("weight_decay", optimizer_options.weight_decay, "of tensors with two or more dims", Differs::told);
  line.add("beta1", optimizer_options.beta1,
           about_beta("decay of the first moment, or the momentum", optimizer_options.beta1, optimizer), Differs::told);
  line.add("beta2", optimizer_options.beta2,
           about_beta("decay of the second moment, where there is one", optimizer_options.beta2, optimizer), Differs::told);
  line.add_device(device);
  line.after_parsing([this, &line, own = optimizer] {
    if (optimizer != own) {
      if (!line.given("beta1")) optimizer_options.beta1.reset();
      if (!line.given("beta2")) optimizer_options.beta2.reset();
    }
    require(optimizer_options.learning_rate > 0, "--learning-rate {} is not above 0", optimizer_options.learning_rate);
    require(optimizer_options.weight_decay >= 0, "--weight-decay {} is below 0", optimizer_options.weight_decay);
    check_beta("--beta1", optimizer_options.beta1);
    check_beta("--beta2", optimizer_options.beta2);
  });
}

void Recipe::add_precision(CommandLine& line) {
  line.set_group("Model");
  line.add("precision", precision, {"fp32", "bf16", "fp16"},
           "fp32; bf16 or fp16: matrix products and convolutions in half the bytes, weights and sums in float32",
           Differs::told);
}

void Recipe::add_validation(CommandLine& line) {
  line.set_group("Validation");
  line.add("validation_interval", validation_interval, "steps between validations; 0: none", Differs::allowed);
  line.after_parsing([this] { require(validation_interval >= 0, "--validation-interval {} is below 0", validation_interval); });
}

void Recipe::add_text(CommandLine& line) {
  add_validation(line);
  line.add("validation_fraction", validation_fraction, "share of the data, at its end, kept for validation");
  line.set_group("Samples");
  line.add("sample", sample, "tokens to generate at the end", Differs::allowed);
  line.after_parsing([this] {
    require(validation_fraction >= 0 && validation_fraction < 1, "--validation-fraction {} does not lie in [0, 1)",
            validation_fraction);
    require(sample >= 0, "--sample {} is below 0", sample);
  });
}

void Recipe::add_shards(CommandLine& line) {
  line.add("validation", validation, "token shards to validate on, for --tokens shards; not given: none", Differs::allowed);
  add_prefetch(line, "token shards");
  line.after_parsing([this, &line] {
    require(validation.empty() || tokens == "shards",
            "--validation {} is for token shards: give --tokens shards with it; of other data --validation-fraction is "
            "validated on",
            validation);
    require(
        tokens != "shards" || !line.given("validation_fraction"),
        "--validation-fraction has no meaning for token shards: name shards by --validation; trireme-data split makes them");
  });
}

void Recipe::add_prefetch(CommandLine& line, const std::string& of_what) {
  line.add("prefetch", prefetch, fmt::format("micro-batches of {} that a thread prefetches; 0: none", of_what),
           Differs::allowed);
  line.after_parsing([this] { require(prefetch >= 0, "--prefetch {} is below 0", prefetch); });
}

data::PrefetchOptions Recipe::ahead() const {
  return {.threads = prefetch > 0 ? 1 : 0, .batches = std::max<std::int64_t>(1, prefetch)};
}

void Recipe::describe_data(Run& run, const std::string& content) const {
  run.describe("data_content", content, run.options().allow_other_data ? Differs::told : Differs::refused);
}

bool Recipe::has_validation(std::int64_t num_tokens, std::int64_t length, std::int64_t block) const {
  require(num_tokens > length || validation_interval == 0 || validation_fraction == 0,
          "the validation part of {} has {} tokens, --block {} needs more; raise --validation-fraction or set it to 0", data,
          num_tokens, block);
  return num_tokens > length;
}

void Recipe::load_weights(const Run& run, const std::function<void()>& load) const {
  if (!init.empty()) run.world().agree(load, "read --init");
}

DType Recipe::dtype_of_save() const {
  if (save_dtype == "bfloat16") return DType::bfloat16;
  return save_dtype == "float16" ? DType::float16 : DType::float32;
}

void Recipe::check_save(const Run& run) const {
  const auto attempt = [&] {
    if (save.empty() || run.world().rank() != 0) return;
    const Location place = save;
    require(in_folders || !is_folder(place), "--save {}: that is a folder, and weights are a file", save);
    require(!in_folders || is_folder(place) || !is_there(place), "--save {}: that is a file, and a model is a folder", save);
    try {
      if (in_folders) file_system_of(place)->create_folder(place);
      const FileReplacement beside(in_folders ? place / "model.safetensors" : place);
    } catch (const Error& error) {
      ErrorFields fields = error.fields();
      fields.message = "the weights of --save could not be written there";
      fields.path = save;
      throw Error(std::move(fields));
    }
  };
  run.world().agree(attempt, "try --save");
}

void Recipe::describe_model(Run& run, const std::function<void(const std::string& folder)>& write) const {
  const Location& checkpoints = run.options().checkpoints.directory;
  if (checkpoints.empty()) return;
  run.load();  // throws before anything is written, if the run is refused
  const auto on_first_replica = [&] {
    if (run.mesh().data().rank() == 0) write((checkpoints / "model").string());
  };
  try {
    run.world().agree(on_first_replica, "describe the model");
  } catch (const Error& error) {  // the disk is full, or transformers has no such model: training goes on
    if (error.code() != ErrorCode::io && error.code() != ErrorCode::invalid_argument) throw;
    run.note(fmt::format("note: the checkpoints do not say which model they are of: {}", error.what()));
  }
}

void Recipe::save_weights(Run& run, const std::function<void()>& write) const {
  if (save.empty()) return;
  const auto on_first_replica = [&] {
    if (run.mesh().data().rank() == 0) write();
  };
  run.world().agree(on_first_replica, "write the weights");
  run.note(fmt::format("weights written to {}", save));
}

void require_count(const char* option, std::int64_t count, std::int64_t most) {
  require(count > 0 && count <= most, "{} {} does not lie in [1, {}]", option, count, most);
}

std::string ranks_of(const Run& run) {
  const int size = run.world().size();
  return fmt::format("{} rank{}", size, size == 1 ? "" : "s");
}

void check_sequences(const Run& run, std::int64_t block, std::int64_t width) {
  const int tensor = run.mesh().tensor().size();
  require(
      !run.options().sequence_parallel || (block % tensor == 0 && block / tensor * width % 16 == 0),
      "--sequence-parallel gives each rank of --tensor-parallel {} the same number of tokens of a sequence, in multiples of "
      "16 numbers: --block {} and a width of {} don't allow that",
      tensor, block, width);
}
