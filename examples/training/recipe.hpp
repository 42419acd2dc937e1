#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>

#include "trireme/data/images/image_batch.hpp"
#include "trireme/data/loaders/prefetching.hpp"
#include "trireme/data/text/token_batch.hpp"
#include "trireme/device/with_device.hpp"
#include "trireme/optim/named.hpp"
#include "trireme/precision/policy.hpp"
#include "trireme/trainer/launch.hpp"

constexpr int most_layers = 100'000;                        // of a model; the same limit as for a config.json
constexpr std::int64_t most_width = std::int64_t{1} << 31;  // of a layer's width, and of the tokens of a sequence

// The options of all bundled trainers in addition to those of a run. The values before add_to() are the defaults.
struct Recipe {
  std::string data;
  std::string init;
  std::string save;
  bool in_folders = false;             // --init and --save name folders, not files
  std::string save_dtype = "float32";  // of weights in folders
  std::string optimizer = "adamw";
  trireme::optim::NamedOptions optimizer_options = {
      .weight_decay = 0.1, .beta1 = 0.9, .beta2 = 0.95, .decay = trireme::optim::Decay::matrices};
  trireme::trainer::DeviceOptions device = {};
  std::string precision = "fp32";
  std::int64_t validation_interval = 100;  // steps; 0: none
  double validation_fraction = 0.1;        // of a text
  std::int64_t sample = 0;                 // tokens
  std::string tokens = "text";             // the format of --data
  std::string validation;                  // token shards; empty: none
  std::int64_t prefetch = 2;               // micro-batches that a thread loads meanwhile, of data that stream

  // Adds the options of all trainers. `about_data`: the help text of --data.
  void add_to(trireme::trainer::CommandLine& line, const std::string& about_data);
  // Add options that only some trainers have.
  void add_precision(trireme::trainer::CommandLine& line);
  void add_validation(trireme::trainer::CommandLine& line);
  void add_text(trireme::trainer::CommandLine& line);    // for language models, with add_validation()
  void add_shards(trireme::trainer::CommandLine& line);  // for language models, in addition to --tokens
  void add_prefetch(trireme::trainer::CommandLine& line, const std::string& of_what);

  // For data that stream: a thread loads them while a step computes, unless --prefetch is 0.
  trireme::data::PrefetchOptions ahead() const;

  // Calls body(P(), D()) with the types for --precision and --device.
  template <typename Body>
  void with_types(const Body& body) const {
    trireme::device::with_device(device.device, [&]<typename D>(D on) {
      if (precision == "bf16") {
        body(trireme::MixedBfloat16(), on);
      } else if (precision == "fp16") {
        body(trireme::MixedFloat16(), on);
      } else {
        body(trireme::Float32(), on);
      }
    });
  }

  // Describes the content of the data to the run: a resumed run must have the same, or --allow-other-data. Collective.
  void describe_data(trireme::trainer::Run& run, const std::string& content) const;

  // Reads --init by calling load(). Call it before the model is added to the run. This and the functions below are collective.
  void load_weights(const trireme::trainer::Run& run, const std::function<void()>& load) const;

  trireme::DType dtype_of_save() const;
  // Throws before the first step if --save can't be written.
  void check_save(const trireme::trainer::Run& run) const;
  // Writes a description of the model into the folder of the checkpoints, for trireme-evaluate and trireme-generate, before the
  // first step. The ranks of the first replica call write(folder).
  void describe_model(trireme::trainer::Run& run, const std::function<void(const std::string& folder)>& write) const;
  // Writes --save: the ranks of the first replica call write().
  void save_weights(trireme::trainer::Run& run, const std::function<void()>& write) const;

  // Whether a validation part with this many tokens has a window of `length` and its target. Throws an Error that names --block
  // if it has none and validation was asked for.
  bool has_validation(std::int64_t num_tokens, std::int64_t length, std::int64_t block) const;

  // Whether a validation is due; call it after an update.
  bool validates(const trireme::trainer::Run& run) const {
    return validation_interval > 0 && run.due(trireme::Steps{validation_interval});
  }
};

// Returns read(). If it throws on one rank, all ranks throw. Collective.
template <typename Read>
auto read_on_all(const trireme::trainer::Run& run, const Read& read) {
  std::optional<decltype(read())> result;
  run.world().agree([&] { result.emplace(read()); }, "read the data");
  return *std::move(result);
}

// Error{invalid_argument} names the option unless its count lies in [1, most].
void require_count(const char* option, std::int64_t count, std::int64_t most);

std::string ranks_of(const trireme::trainer::Run& run);  // "2 ranks"

// Throws unless --sequence-parallel can divide a single sequence of --block tokens, as in validation and samples.
void check_sequences(const trireme::trainer::Run& run, std::int64_t block, std::int64_t width);
