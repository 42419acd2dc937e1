#include <cmath>
#include <filesystem>
#include <fstream>
#include <functional>

#include "catch.hpp"
#include "fixtures.hpp"
#include "temporary_folder.hpp"
#include "trireme/models/folders/hugging_face.hpp"

using namespace trireme;
using nlohmann::json;

namespace {

bool is_gpt2(const tests::ModelFolder& folder) { return folder.name() == "gpt2"; }

// Calls use(model) with the folder's model, loaded.
template <typename P>
void with_model(const tests::ModelFolder& folder, const auto& use) {
  if (is_gpt2(folder)) {
    models::Gpt<P> model(models::gpt_options(folder.path));
    models::load_pretrained(model, folder.path);
    use(model);
  } else {
    models::GptNeoX<P> model(models::gpt_neox_options(folder.path));
    models::load_pretrained(model, folder.path);
    use(model);
  }
}

Tensor<std::int32_t> read_tokens(const tests::ModelFolder& folder) {
  const SafetensorsFile file = folder.expected();
  return Tensor<std::int32_t>::from(file.at("tokens").shape, file.read_values<std::int32_t>("tokens"));
}

template <typename P>
double relative_error(const tests::ModelFolder& folder) {
  double error = 0, norm = 0;
  with_model<P>(folder, [&](const auto& model) {
    const auto wanted = tests::read_floats(folder.expected(), "logits");
    const auto logits = model.logits(read_tokens(folder)).value();
    for (std::size_t i = 0; i < wanted.size(); ++i) {
      error += std::pow(static_cast<float>(logits.span()[i]) - wanted[i], 2);
      norm += std::pow(wanted[i], 2);
    }
  });
  return std::sqrt(error / norm);
}

json config_of(const char* name) {
  for (const tests::ModelFolder& folder : tests::model_folders("folders_of_gpt")) {
    if (folder.name() == name) return tests::read_json(folder.path / "config.json");
  }
  return {};
}

}  // namespace

TEST_CASE("GPT-2 and GPT-NeoX of transformers give its logits") {
  for (const tests::ModelFolder& folder : tests::model_folders("folders_of_gpt")) {
    CAPTURE(folder.name());
    with_model<Float32>(folder, [&](const auto& model) {
      const auto tokens = read_tokens(folder);
      const auto logits = model.logits(tokens).value();
      const auto wanted = tests::read_floats(folder.expected(), "logits");
      CHECK(tests::mismatch(logits.span(), wanted, {.atol = 1e-4, .rtol = 0}) == "");
      const auto next = model.next_token_logits(tokens);
      const std::size_t vocabulary = static_cast<std::size_t>(model.options().vocabulary);
      CHECK(tests::mismatch(next.narrow(3, 1).span(), std::span(wanted).last(vocabulary), {.atol = 1e-4, .rtol = 0}) == "");
    });
    CHECK(relative_error<MixedBfloat16>(folder) < 0.03);
    CHECK(relative_error<MixedFloat16>(folder) < 0.004);
  }
}

TEST_CASE("GPT-2 and GPT-NeoX of transformers give the logits of texts that lie in one row") {
  for (const tests::ModelFolder& folder : tests::model_folders("folders_of_gpt")) {
    CAPTURE(folder.name());
    with_model<Float32>(folder, [&](const auto& model) {
      const auto tokens = read_tokens(folder);
      const auto wanted = tests::read_floats(folder.expected(), "logits");
      const std::int64_t vocabulary = model.options().vocabulary, time = tokens.dim(1);
      // The first 30 tokens of the first text and 10 of the second.
      Tensor<std::int32_t> packed({1, 40}), starts({1, 40});
      for (std::int64_t i = 0; i < 40; ++i) {
        packed.data()[i] = tokens.data()[i < 30 ? i : time + i - 30];
        starts.data()[i] = i < 30 ? 0 : 30;
      }
      const auto logits = model.forward({.tokens = packed, .document_starts = starts}).value();
      const auto part = [&](std::int64_t first, std::int64_t count) {
        return std::span(wanted).subspan(static_cast<std::size_t>(first * vocabulary),
                                         static_cast<std::size_t>(count * vocabulary));
      };
      CHECK(tests::mismatch(logits.span().first(part(0, 30).size()), part(0, 30), {.atol = 1e-4, .rtol = 0}) == "");
      CHECK(tests::mismatch(logits.span().last(part(0, 10).size()), part(time, 10), {.atol = 1e-4, .rtol = 0}) == "");
    });
  }
}

TEST_CASE("the folder of a GPT-2 or GPT-NeoX is written as it was read") {
  for (const tests::ModelFolder& folder : tests::model_folders("folders_of_gpt")) {
    CAPTURE(folder.name());
    const json before = tests::read_json(folder.path / "config.json");
    const tests::TemporaryFolder written;
    with_model<Float32>(folder, [&](const auto& model) {
      models::save_pretrained(
          model, written.path(),
          {.dtype = before.at("dtype") == "bfloat16" ? DType::bfloat16 : DType::float32, .from = folder.path});
    });
    const SafetensorsFile original(folder.path / "model.safetensors"), copy(written.path() / "model.safetensors");
    CHECK(tests::differing_tensors(original, copy).empty());
    const json after = tests::read_json(written.path() / "config.json");
    for (const auto& [key, value] : after.items()) {
      CAPTURE(key);
      if (key == "hidden_act" || key.starts_with("rotary_")) continue;  // other words for the same
      REQUIRE(before.contains(key));
      CHECK(before.at(key) == value);
    }
    if (is_gpt2(folder)) continue;
    const auto options = models::gpt_neox_options(folder.path), again = models::gpt_neox_options(written.path());
    CHECK(again.rotary_base == options.rotary_base);
    CHECK(again.rotary_share == options.rotary_share);
    CHECK(again.activation == options.activation);
  }
}

TEST_CASE("what a GPT-2 or GPT-NeoX drops, and keys without effect, are read") {
  const tests::TemporaryFolder folder;
  const auto with = [&](json config, const json& more) {
    config.update(more);
    std::ofstream(folder.path() / "config.json") << config.dump();
    return folder.path();
  };
  const auto gpt2 =
      models::gpt_options(with(config_of("gpt2"), {{"resid_pdrop", 0.2},
                                                   {"embd_pdrop", 0.3},
                                                   {"_num_labels", 1},
                                                   {"task_specific_params", {{"text-generation", {{"max_length", 50}}}}}}));
  CHECK(gpt2.dropout == 0.2);
  CHECK(gpt2.embedding_dropout == 0.3);
  CHECK_FALSE(models::gpt_options(with(config_of("gpt2"), {{"resid_pdrop", 0.2}, {"embd_pdrop", 0.2}})).embedding_dropout);
  const auto neox =
      models::gpt_neox_options(with(config_of("neox"), {{"hidden_dropout", 0.1},
                                                        {"attention_dropout", 0.2},
                                                        {"num_steps", "global_step301000"},
                                                        {"custom_pipelines", {{"text-generation", {{"impl", "x"}}}}}}));
  CHECK(neox.unused_hidden_dropout == 0.1);
  CHECK(neox.unused_attention_dropout == 0.2);
}

TEST_CASE("configs of other GPT-2 and GPT-NeoX are refused by name") {
  const tests::TemporaryFolder folder;
  const auto refused = [&](const json& config, const char* key, const json& value) {
    CAPTURE(key);
    json changed = config;
    changed[key] = value;
    std::ofstream(folder.path() / "config.json") << changed.dump();
    const bool gpt2 = config.at("model_type") == "gpt2";
    CHECK_THROWS_WITH(gpt2 ? static_cast<void>(models::gpt_options(folder.path()))
                           : static_cast<void>(models::gpt_neox_options(folder.path())),
                      ContainsSubstring(key));
  };
  const json gpt2 = config_of("gpt2"), neox = config_of("neox");
  refused(gpt2, "model_type", "gpt_bigcode");
  refused(gpt2, "activation_function", "gelu");
  refused(gpt2, "n_inner", 96);
  refused(gpt2, "embd_pdrop", 1);
  refused(gpt2, "layer_norm_epsilon", 1e-6);
  refused(gpt2, "scale_attn_weights", false);
  refused(gpt2, "scale_attn_by_inverse_layer_idx", true);
  refused(gpt2, "add_cross_attention", true);
  refused(gpt2, "n_head", 5);
  refused(gpt2, "hidden_twist", 1);
  refused(neox, "model_type", "gptj");
  refused(neox, "hidden_act", "quick_gelu");
  refused(neox, "attention_dropout", 1);
  refused(neox, "hidden_dropout", -0.1);
  refused(neox, "rope_parameters", {{"rope_type", "yarn"}, {"factor", 2}});
  refused(neox, "rope_parameters", {{"rope_type", "default"}, {"mscale", 2}});
  refused(neox, "num_attention_heads", 5);
  refused(neox, "hidden_twist", 1);
}

TEST_CASE("a GPT-NeoX of wrong sizes is refused") {
  using NeoX = models::GptNeoX<Float32>;
  CHECK_THROWS_WITH(NeoX({.heads = 5}), ContainsSubstring("got 5 heads and width 384"));
  CHECK_THROWS_WITH(NeoX({.heads = 128, .rotary_share = 0.4}), ContainsSubstring("even number of the 3 elements"));
  const NeoX model({.layers = 1, .heads = 2, .width = 16, .hidden = 16, .vocabulary = 9, .block = 4});
  CHECK_THROWS_WITH(model.logits(Tensor<std::int32_t>::zeros({1, 5})), ContainsSubstring("a model of 4 positions"));
}
