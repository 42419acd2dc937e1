#include "trireme/models/folders/gpt2_safetensors.hpp"

#include <cmath>
#include <filesystem>
#include <functional>

#include "catch.hpp"
#include "fixtures.hpp"
#include "temporary_folder.hpp"
#include "trireme/files/digest.hpp"
#include "trireme/models/architectures/generate.hpp"
#include "trireme/models/folders/hugging_face.hpp"

using namespace trireme;
using nlohmann::json;

namespace {

models::GptOptions options_of(const json& config) {
  return {.layers = config.at("n_layer"),
          .heads = config.at("n_head"),
          .width = config.at("n_embd"),
          .block = config.at("n_positions"),
          .vocabulary = config.at("vocab_size")};
}

std::uint64_t digest_of(FlatStore& store) {
  const auto values = store.values<float>();
  return digest<float>("all", std::span<const float>(values.span()));
}

// Runs check(entry, path of the weights) for every trained GPT of the references.
void for_each_trained_gpt(const std::function<void(const json& entry, const std::filesystem::path& path)>& check) {
  for (const auto& [name, entry] : tests::trained_models()) {
    if (!name.starts_with("gpt") || !entry.contains("pretrained")) {
      tests::list_skipped(name, "no trained GPT");
      continue;
    }
    CAPTURE(name);
    check(entry, tests::refs_folder_or_skip() / entry.at("pretrained").at("file").get<std::string>());
  }
}

}  // namespace

TEST_CASE("a GPT-2 file is written as it was read") {
  for_each_trained_gpt([](const json& entry, const std::filesystem::path& path) {
    models::Gpt<Float32> model(options_of(entry.at("config")));
    models::load_pretrained(model, path.string());
    const tests::TemporaryFolder folder;
    const auto written = (folder.path() / "written.safetensors").string();
    models::save_gpt2(model, written);

    const SafetensorsFile original(path);
    const SafetensorsFile copy(written);
    CHECK(tests::differing_tensors(original, copy).empty());
    CHECK(copy.metadata().at("format") == "pt");
  });
}

TEST_CASE("one safetensors file of a GPT-2 is read as its folder is") {
  const models::GptOptions options{.layers = 1, .heads = 2, .width = 8, .block = 4, .vocabulary = 16};
  models::Gpt<Float32> model(options);
  model.initialize({.seed = 3});
  const tests::TemporaryFolder folder;
  const auto file = folder.path() / "alone.safetensors";
  models::save_gpt2(model, file.string());
  models::save_pretrained(model, folder.path() / "folder");
  for (const auto& path : {file, folder.path() / "folder", folder.path() / "folder" / "model.safetensors"}) {
    CAPTURE(path);
    models::Gpt<Float32> read(options);
    const nn::LoadedWeights loaded = models::load_pretrained(read, path);
    CHECK(loaded.missing.empty());
    CHECK(loaded.unexpected.empty());
    CHECK(digest_of(read.store()) == digest_of(model.store()));
  }
}

TEST_CASE("a file that does not fit is refused and changes nothing") {
  for_each_trained_gpt([](const json& entry, const std::filesystem::path& path) {
    const auto refused = [&](models::GptOptions options) {
      models::Gpt<Float32> model(options);
      model.initialize({.seed = 1});
      const std::uint64_t before = digest_of(model.store());
      CHECK_THROWS_AS(models::load_pretrained(model, path.string()), Error);
      CHECK(digest_of(model.store()) == before);
    };
    models::GptOptions options = options_of(entry.at("config"));
    ++options.layers;
    refused(options);
    options.layers -= 2;
    if (options.layers > 0) refused(options);
    ++options.layers;
    options.block *= 2;
    refused(options);
  });
}

TEST_CASE("a trained GPT gives PyTorch's logits, loss and text") {
  for_each_trained_gpt([](const json& entry, const std::filesystem::path& path) {
    const json& trained = entry.at("pretrained");
    models::Gpt<Float32> model(options_of(entry.at("config")));
    models::load_pretrained(model, path.string());
    const SafetensorsFile expected(tests::refs_folder_or_skip() / trained.at("expected").get<std::string>());

    const std::string prompt = trained.at("greedy_prompt");
    const std::string text = trained.at("greedy_text");
    const std::vector<std::int32_t> start(prompt.begin(), prompt.end());
    const auto count = static_cast<std::int64_t>(text.size() - prompt.size());
    const auto tokens = models::generate(model, start, {.count = count, .temperature = 0});
    CHECK(prompt + std::string(tokens.begin(), tokens.end()) == text);

    const Shape shape = expected.at("val_input_ids").shape;
    const auto read = [&](const char* name) {
      const auto stored = tests::read_integers(expected, name);
      return Tensor<std::int32_t>::from(shape, std::vector<std::int32_t>(stored.begin(), stored.end()));
    };
    const auto windows = read("val_input_ids");
    const auto targets = read("val_targets");
    const auto logits = model.logits(windows.narrow(0, 1)).value();
    CHECK(tests::mismatch(logits.span(), tests::read_floats(expected, "logits_window0"), {.atol = 5e-5, .rtol = 0}) == "");
    const auto losses = expected.read_values<double>("val_loss_per_window");
    for (std::int64_t window = 0; window < shape[0]; ++window) {
      CAPTURE(window);
      const double loss = model.loss(windows.narrow(window, 1), targets.narrow(window, 1)).mean();
      CHECK(std::abs(loss - losses[static_cast<std::size_t>(window)]) <= 1e-5);
    }
  });
}
