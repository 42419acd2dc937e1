#include "export_folder.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "model_folder.hpp"
#include "trireme/checkpoint/checkpoint_reader.hpp"
#include "trireme/checkpoint/checkpoints.hpp"
#include "trireme/files/file_system.hpp"
#include "trireme/models/folders/hugging_face.hpp"
#include "trireme/nn/weights/lora.hpp"

using namespace trireme;
using models::Family;

namespace {

using Net = Float32;

// Inputs and outputs have the same names as in other exporters.
void text_model(const models::Bert<Net>& model, onnx::Example& example) {
  const Shape shape{example.dynamic("batch"), example.dynamic("sequence")};
  const auto types = static_cast<std::int32_t>(model.options().token_types);
  const data::TextBatch batch{.tokens = example.input<std::int32_t>("input_ids", shape),
                              .targets = {},
                              .key_padding_mask = example.padding_mask("attention_mask", shape),
                              .token_types = example.input<std::int32_t>("token_type_ids", shape, types)};
  example.output("logits", model.forward(batch));
}
void image_model(const models::VisionTransformer<Net>& model, onnx::Example& example) {
  const models::VisionTransformerOptions& of = model.options();
  const auto images = example.images("pixel_values", {example.dynamic("batch"), of.image_size, of.image_size, of.channels});
  example.output("logits", model.logits(images));
}
void language_model(const auto& model, onnx::Example& example) {
  const Shape shape{example.dynamic("batch"), example.dynamic("sequence")};
  example.output("logits", model.logits(example.input<std::int32_t>("input_ids", shape)));
}

// The files of the tokenizer and the preprocessor are stored unchanged, under their names.
std::map<std::string, std::string> metadata_of(const ModelFolder& folder) {
  std::map<std::string, std::string> metadata{{"model_type", models::model_type(folder.path)}};
  const auto add = [&](const char* name) {
    if (is_there(folder.path / name)) metadata[name] = open_file(folder.path / name)->content();
  };
  for (const char* name : {"tokenizer.json", "tokenizer_config.json", "preprocessor_config.json"}) add(name);
  if (!metadata.contains("tokenizer.json")) {
    for (const char* name : {"vocab.txt", "vocab.json", "merges.txt", "added_tokens.json"}) add(name);
  }
  const nlohmann::json config = nlohmann::json::parse(open_file(folder.path / "config.json")->content(), nullptr, false);
  if (config.is_object() && config.contains("id2label")) metadata["id2label"] = config.at("id2label").dump();
  return metadata;
}

// Loads the tensors of a checkpoint one by one.
void load_checkpoint(Model& model, const Location& run) {
  const checkpoint::CheckpointReader reader(checkpoint::newest_folder(run));
  for (const checkpoint::SavedTensor& tensor : reader.manifest().tensors) {
    require(!nn::is_of_adapter(tensor.name),
            "{} is of a model with adapters, as {}: save the adapter as a folder and export it with --adapter",
            reader.folder().string(), tensor.name);
  }
  const auto read = [&](const std::string& name, const Shape& shape, const auto& write) {
    const checkpoint::SavedTensor* tensor = reader.find("model." + name);
    require(tensor != nullptr, "{} has no tensor model.{}: is it of the model in --model?", reader.folder().string(), name);
    require(tensor->dtype == DType::float32 && tensor->shape == shape,
            "{}: model.{} is {} {}, but the model in --model has float32 {}", reader.folder().string(), name,
            name_of(tensor->dtype), tensor->shape, shape);
    Tensor<float> values(shape);
    std::ranges::copy(reader.read(*tensor), std::as_writable_bytes(values.span()).begin());
    write(values);
  };
  FlatStore& store = model.store();
  for (int index = 0; index < store.num_parameters(); ++index) {
    const ParameterInfo& info = store.parameter(index);
    read(info.name, info.shape, [&](const Tensor<float>& values) { store.write_values(index, values); });
  }
  BufferPlane& buffers = store.buffers();
  for (const int index : buffers.in_weights()) {
    const BufferInfo& info = buffers.info(index);
    read(info.name, info.shape, [&](const Tensor<float>& values) { buffers.write_values(index, values); });
  }
}

// Exports a model with the weights of the folder, or of the checkpoint.
template <typename Of>
onnx::Exported export_one(const ModelFolder& folder, const FolderExport& options, const auto& sizes, const auto& pass) {
  const onnx::ExportOptions to{.metadata = metadata_of(folder), .external_data_above = options.external_data_above};
  onnx::Exported exported;
  const auto write = [&](Of& model) {
    exported = onnx::export_model(
        model, options.output, [&](onnx::Example& example) { pass(model, example); }, to);
  };
  const bool saved = !options.checkpoint.empty();
  Of model(sizes, saved ? ModelContext{} : context_of(folder, {}));
  fill(model, folder, [&] {
    if (saved) {
      load_checkpoint(model, options.checkpoint);
    } else {
      models::load_pretrained(model, folder.path);
    }
  });
  write(model);
  return exported;
}

}  // namespace

onnx::Exported export_folder(const FolderExport& options) {
  const ModelFolder folder = read_model_folder(options.folder, options.adapter);
  require(folder.checkpoint.empty(),
          "--model {} is a checkpoint: give it as --checkpoint, and a folder of its model as --model", options.folder);
  const bool takes_adapters = folder.family != Family::bert && folder.family != Family::vit;
  require(options.adapter.empty() || takes_adapters, "--adapter: a {} takes no adapters here", models::model_type(folder.path));
  const auto read_text = [](const auto& model, onnx::Example& example) { language_model(model, example); };
  switch (folder.family) {
    case Family::bert: return export_one<models::Bert<Net>>(folder, options, models::bert_options(folder.path), text_model);
    case Family::vit:
      return export_one<models::VisionTransformer<Net>>(folder, options, models::vit_options(folder.path), image_model);
    case Family::gpt2: return export_one<models::Gpt<Net>>(folder, options, models::gpt_options(folder.path), read_text);
    case Family::gpt_neox:
      return export_one<models::GptNeoX<Net>>(folder, options, models::gpt_neox_options(folder.path), read_text);
    case Family::llama: break;
  }
  return export_one<models::Llama<Net>>(folder, options, models::llama_options(folder.path), read_text);
}
