#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>

#include "trireme/data/images/image_batch.hpp"
#include "trireme/data/text/token_batch.hpp"
#include "trireme/device/with_device.hpp"
#include "trireme/optim/named.hpp"
#include "trireme/precision/policy.hpp"
#include "trireme/trainer/launch.hpp"

constexpr int most_layers = 100'000;                        // of a model, as in a config.json
constexpr std::int64_t most_width = std::int64_t{1} << 31;  // numbers side by side, or tokens of a sequence

// What a bundled trainer can be told beside the options of a run. What is there before add_to() are its defaults.
struct Recipe {
  std::string data;
  std::string init;
  std::string save;
  bool in_folders = false;             // --init and --save, rather than in files
  std::string save_dtype = "float32";  // of weights in folders
  std::string optimizer = "adamw";
  trireme::optim::NamedOptions optimizer_options = {
      .weight_decay = 0.1, .beta1 = 0.9, .beta2 = 0.95, .decay = trireme::optim::Decay::matrices};
  trireme::trainer::DeviceOptions device = {};
  std::string precision = "fp32";
  std::int64_t validation_interval = 100;  // steps; 0: none
  double validation_fraction = 0.1;        // of a text
  std::int64_t sample = 0;                 // tokens

  // The options of all trainers. `about_data`: what --data is.
  void add_to(trireme::trainer::CommandLine& line, const std::string& about_data);
  // Of some of them.
  void add_precision(trireme::trainer::CommandLine& line);
  void add_validation(trireme::trainer::CommandLine& line);
  void add_text(trireme::trainer::CommandLine& line);  // for models of language, with add_validation()

  // body(P(), D()) with the precision and the device that were asked for.
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

  // What the data hold, in words: a run goes on with the same, unless --allow-other-data says otherwise. Collective.
  void describe_data(trireme::trainer::Run& run, const std::string& content) const;

  // Reads --init before the model is added to the run, by load(). Collective, as is all below.
  void load_weights(const trireme::trainer::Run& run, const std::function<void()>& load) const;

  trireme::DType dtype_of_save() const;
  // An Error before the first step where --save can't be written.
  void check_save(const trireme::trainer::Run& run) const;
  // Before the first step of a run with checkpoints: write(folder) says there which model they are of, for trireme-evaluate and
  // trireme-generate. The ranks of the first replica call it.
  void describe_model(trireme::trainer::Run& run, const std::function<void(const std::string& folder)>& write) const;
  // Writes --save by write(), which the ranks of the first replica call.
  void save_weights(trireme::trainer::Run& run, const std::function<void()>& write) const;

  // Whether the validation part of a text, of so many tokens, has a window of `length` and its target. Where it has none and
  // validation was asked for: an Error that names --block.
  bool has_validation(std::int64_t tokens, std::int64_t length, std::int64_t block) const;

  // After an update: whether the model is to be validated.
  bool validates(const trireme::trainer::Run& run) const {
    return validation_interval > 0 && run.due(trireme::Steps{validation_interval});
  }
};

// What read() gives. Where it fails on one rank it fails on all. Collective.
template <typename Read>
auto read_on_all(const trireme::trainer::Run& run, const Read& read) {
  std::optional<decltype(read())> result;
  run.world().agree([&] { result.emplace(read()); }, "read the data");
  return *std::move(result);
}

// Error{invalid_argument} names the option unless its count lies in [1, most].
void require_count(const char* option, std::int64_t count, std::int64_t most);

std::string ranks_of(const trireme::trainer::Run& run);  // "2 ranks"

// That --sequence-parallel can divide a single sequence of --block tokens, as validation and samples have it.
void check_sequences(const trireme::trainer::Run& run, std::int64_t block, std::int64_t width);
