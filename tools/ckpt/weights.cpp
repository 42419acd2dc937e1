#include <fmt/format.h>
#include <fmt/ranges.h>

#include <span>

#include "commands.hpp"
#include "trireme/checkpoint/checkpoint_reader.hpp"
#include "trireme/checkpoint/checkpoints.hpp"
#include "trireme/checkpoint/claim.hpp"
#include "trireme/comm/launch/launch.hpp"
#include "trireme/core/error.hpp"
#include "trireme/data/text/vocabulary.hpp"
#include "trireme/files/safetensors.hpp"
#include "trireme/models/folders/gpt2_safetensors.hpp"
#include "trireme/ops/array/transpose.hpp"

// Exports the weights of checkpoints to files, and imports files as checkpoints.
namespace trireme::ckpt {
namespace {

using checkpoint::CheckpointReader;
using checkpoint::SavedTensor;

constexpr const char* model_prefix = "model.";  // the trainers' names of weights begin with it

std::vector<std::byte> transposed(const SavedTensor& tensor, const std::vector<std::byte>& bytes) {
  require(tensor.dtype == DType::float32, "{} is {}: transformers takes float32; --format plain writes it as it is",
          tensor.name, name_of(tensor.dtype));
  Tensor<float> rows(tensor.shape);
  Tensor<float> columns(ops::transposed_shape(tensor.shape, 0, 1));
  std::ranges::copy(bytes, std::as_writable_bytes(rows.span()).begin());
  ops::transpose(rows, 0, 1, columns);
  const auto result = std::as_bytes(columns.span());
  return {result.begin(), result.end()};
}

}  // namespace

int export_weights(const ExportOptions& options) {
  const CheckpointReader reader(checkpoint::newest_folder(options.run));
  std::vector<TensorRef> tensors;
  std::vector<std::vector<std::byte>> contents;
  int left_out = 0;
  for (const SavedTensor& tensor : reader.manifest().tensors) {
    if (!tensor.name.starts_with(options.prefix)) continue;
    if (tensor.optional) {  // not part of the model: only training needs it, as the states of an LSTM's rows
      ++left_out;
      continue;
    }
    TensorRef exported{.name = tensor.name.substr(options.prefix.size()), .dtype = tensor.dtype, .shape = tensor.shape};
    contents.push_back(reader.read(tensor));
    if (options.format == "huggingface" && models::stored_transposed(exported.name)) {
      contents.back() = transposed(tensor, contents.back());
      exported.shape = ops::transposed_shape(tensor.shape, 0, 1);
    }
    tensors.push_back(std::move(exported));
  }
  require(!tensors.empty(), "{} holds no tensor whose name begins with \"{}\"{}", reader.folder().string(), options.prefix,
          left_out == 0 ? "" : fmt::format(", but {} that only training needs", left_out));
  for (std::size_t index = 0; index < tensors.size(); ++index) tensors[index].data = contents[index].data();
  SafetensorsMetadata metadata{{"format", "pt"}};
  // The vocabulary of a model of text: with it the model can generate text without its training text.
  const auto vocabulary = reader.manifest().values.find(data::vocabulary_name);
  if (vocabulary != reader.manifest().values.end()) {
    if (const auto* text = std::get_if<std::string>(&vocabulary->second)) metadata.emplace(data::vocabulary_name, *text);
  }
  write_safetensors(options.file, tensors, metadata);
  fmt::print("{} tensors of step {} written to {}\n", tensors.size(), reader.manifest().step, options.file);
  return 0;
}

int import_weights(const std::string& file, const std::string& directory) {
  const auto steps = checkpoint::committed_steps(directory);
  require(steps.empty(), "{} holds checkpoints of steps [{}]: weights are imported into a directory without any", directory,
          fmt::join(steps, ", "));
  checkpoint::require_unclaimed(directory);
  models::Gpt<Float32> model(models::gpt2_options(file));
  models::load_pretrained(model, file);
  State state;
  model.store().add_to(state, model_prefix);
  return launch(BackendKind::thread, {}, [&](const Group& alone) {
    checkpoint::Checkpoints checkpoints(alone, {.directory = directory, .asynchronous = false});
    checkpoints.save(0, state, {}, checkpoint::ImportedWeights{.source = file, .prefix = model_prefix});
    fmt::print("{} tensors of {} written to {}\n", state.tensors().size(), file,
               checkpoint::checkpoint_folder(directory, 0).string());
    return 0;
  });
}

}  // namespace trireme::ckpt
