// Writes models of every family as ONNX files, and beside each file inputs and results at other sizes than those of the export,
// for benchmarks/peers/compare_onnx:
//
//   onnx_models --folder FOLDER

#include "onnx_models.hpp"

#include <functional>

#include "measurement/command_line.hpp"

namespace {

Variable<float> logits_of(const auto& model, const Tensor<std::int32_t>& tokens) {
  if constexpr (requires { model.logits(tokens); }) {
    return model.logits(tokens);
  } else {
    nn::RecurrentState<float> from_the_beginning;
    return model.logits(tokens, from_the_beginning);
  }
}

template <typename Net>
void write_language_model(const Folder& to, const std::string& name, const auto& options) {
  Net model(options);
  const auto pass = [&](onnx::Example& example) {
    const Shape shape{example.dynamic("batch"), example.dynamic("sequence")};
    example.output("logits", logits_of(model, example.input<std::int32_t>("input_ids", shape)));
  };
  write(to, name, model, pass, any_size, [&](const auto& path, std::int64_t batch, std::int64_t time) {
    const auto tokens = tokens_of(batch, time, options.vocabulary);
    const auto logits = logits_of(model, tokens).value();
    write_safetensors(path, std::vector{named("input_ids", tokens), named("out.logits", logits)});
  });
}

void write_bert(const Folder& to, const std::string& name, const models::BertOptions& options) {
  models::Bert<Float32> model(options);
  const auto pass = [&](onnx::Example& example) {
    const Shape shape{example.dynamic("batch"), example.dynamic("sequence")};
    example.output(
        "logits", model.logits(example.input<std::int32_t>("input_ids", shape), example.padding_mask("attention_mask", shape)));
  };
  write(to, name, model, pass, any_size, [&](const auto& path, std::int64_t batch, std::int64_t time) {
    const auto tokens = tokens_of(batch, time, options.vocabulary);
    Tensor<std::int32_t> attention({batch, time}), padding({batch, time});
    for (std::int64_t i = 0; i < batch * time; ++i) {
      padding.data()[i] = i % time > 0 && i % time >= time - 2 * (i / time) ? 1 : 0;
      attention.data()[i] = 1 - padding.data()[i];
    }
    const auto logits = model.logits(tokens, padding).value();
    write_safetensors(path,
                      std::vector{named("input_ids", tokens), named("attention_mask", attention), named("out.logits", logits)});
  });
}

template <typename Net>
void write_image_model(const Folder& to, const std::string& name, const auto& options, std::int64_t size,
                       std::int64_t channels) {
  Net model(options);
  const auto pass = [&](onnx::Example& example) {
    example.output("logits", model.logits(example.images("pixel_values", {example.dynamic("batch"), size, size, channels})));
  };
  write(to, name, model, pass, any_size, [&](const auto& path, std::int64_t batch, std::int64_t) {
    const auto images = waves({batch, size, size, channels});
    const auto first = permute(Variable<float>(images), {0, 3, 1, 2}).value();
    const auto logits = model.logits(images).value();
    write_safetensors(path, std::vector{named("pixel_values", first), named("out.logits", logits)});
  });
}

void write_all(const Folder& to) {
  using models::Bert, models::Cnn, models::Gpt, models::GptNeoX, models::Llama, models::ResNet, models::VisionTransformer;
  write_language_model<Gpt<Float32>>(to, "gpt", models::GptOptions{.layers = 3, .heads = 4, .width = 64, .block = 32});
  write_language_model<Gpt<Float32>>(
      to, "gpt_larger", models::GptOptions{.layers = 6, .heads = 6, .width = 384, .block = 256, .vocabulary = 4096});
  const models::LlamaOptions llama{.layers = 3, .heads = 4, .width = 64, .hidden = 96};
  const auto changed = [&](const std::function<void(models::LlamaOptions&)>& change) {
    models::LlamaOptions options = llama;
    change(options);
    return options;
  };
  write_language_model<Llama<Float32>>(to, "llama", llama);
  write_language_model<Llama<Float32>>(to, "llama_grouped_tied", changed([](auto& of) { of.kv_heads = 2, of.tied = true; }));
  write_language_model<Llama<Float32>>(
      to, "llama_linear", changed([](auto& of) { of.rotary_scaling = {.kind = ops::RotaryScalingKind::linear, .factor = 2}; }));
  write_language_model<Llama<Float32>>(to, "llama3_scaled", changed([](auto& of) {
                                         of.rotary_scaling = {
                                             .kind = ops::RotaryScalingKind::llama3, .factor = 8, .trained_positions = 64};
                                       }));
  write_language_model<Llama<Float32>>(
      to, "llama_yarn", changed([](auto& of) {
        of.rotary_scaling = {
            .kind = ops::RotaryScalingKind::yarn, .factor = 4, .trained_positions = 64, .attention_factor = 1.14};
      }));
  write_language_model<Llama<Float32>>(to, "mistral", changed([](auto& of) { of.kv_heads = 1, of.window = 4; }));
  write_language_model<Llama<Float32>>(to, "qwen2", changed([](auto& of) { of.attention_bias = true, of.tied = true; }));
  write_language_model<Llama<Float32>>(to, "qwen3", changed([](auto& of) { of.query_key_norm = true, of.head_size = 24; }));
  const models::GptNeoXOptions neox{.layers = 3, .heads = 4, .width = 64, .hidden = 96, .vocabulary = 256, .block = 64};
  write_language_model<GptNeoX<Float32>>(to, "gpt_neox", neox);
  models::GptNeoXOptions serial = neox;
  serial.parallel_residual = false;
  serial.rotary_share = 1;
  write_language_model<GptNeoX<Float32>>(to, "gpt_neox_serial", serial);
  models::BertOptions bert{.layers = 3, .heads = 4, .width = 64, .hidden = 96, .vocabulary = 256, .block = 64};
  write_bert(to, "bert", bert);
  bert.classes = 5;
  write_bert(to, "bert_classifier", bert);
  models::VisionTransformerOptions vit{
      .layers = 3, .heads = 4, .width = 64, .hidden = 96, .image_size = 32, .patch_size = 8, .classes = 10};
  write_image_model<VisionTransformer<Float32>>(to, "vit", vit, 32, 3);
  vit.distilled = true;
  write_image_model<VisionTransformer<Float32>>(to, "deit", vit, 32, 3);
  const models::ResNetOptions cifar{.widths = {16, 32}, .blocks = {1, 1}};
  write_image_model<ResNet<Float32>>(to, "resnet", cifar, 32, 3);
  const models::ResNetOptions bottlenecks{.block = models::ResNetOptions::Block::bottleneck,
                                          .stem = models::ResNetOptions::Stem::imagenet,
                                          .widths = {16, 32},
                                          .blocks = {1, 2}};
  write_image_model<ResNet<Float32>>(to, "resnet_bottlenecks", bottlenecks, 64, 3);
  write_image_model<Cnn<Float32>>(to, "cnn", models::CnnOptions{}, 28, 1);
  write_language_model<Llama<Float32>>(to, "mixtral", changed([](auto& of) { of.experts = {.count = 4, .top_k = 2}; }));
  write_language_model<Llama<Float32>>(
      to, "qwen2_moe", changed([](auto& of) {
        of.experts = {.count = 4, .top_k = 2, .renormalise = false, .shared_hidden = 24, .shared_gate = true};
      }));
  write_language_model<models::LstmLm<Float32>>(to, "lstm_lm", models::LstmLmOptions{.vocabulary = 60});
  write_layers(to);
}

}  // namespace

int main(int argc, char** argv) {
  std::string folder;
  Folder to;
  CommandLine command("Writes models of every family as ONNX files, and beside each what it computes.");
  command.option("--folder", folder, "where to");
  command.option("--external-data-above", to.options.external_data_above, "bytes of weights that stay in the file",
                 not_negative);
  command.require("--folder");
  if (const auto code = command.parse(argc, argv)) return *code;
  to.path = folder;
  try {
    std::filesystem::create_directories(to.path);
    write_all(to);
  } catch (const std::exception& error) {
    fmt::print(stderr, "{}\n", error.what());
    return 1;
  }
  return 0;
}
