// Llamas of transformers: their logits, and the folders that they are written to.

#include "trireme/models/architectures/llama.hpp"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <functional>

#include "catch.hpp"
#include "fixtures.hpp"
#include "temporary_folder.hpp"
#include "trireme/models/architectures/generate.hpp"
#include "trireme/models/folders/hugging_face.hpp"

using namespace trireme;
using nlohmann::json;

namespace {

namespace fs = std::filesystem;

// Runs check(folder) for every model of the references.
void for_each_folder(const std::function<void(const fs::path& folder)>& check) {
  for (const tests::ModelFolder& folder : tests::model_folders("folders_of_transformers")) {
    CAPTURE(folder.name());
    check(folder.path);
  }
}

std::vector<std::int32_t> read_tokens(const SafetensorsFile& file, const char* name) {
  return file.read_values<std::int32_t>(name);
}

Tensor<std::int32_t> read_windows(const SafetensorsFile& file) {
  return Tensor<std::int32_t>::from(file.at("tokens").shape, read_tokens(file, "tokens"));
}

}  // namespace

TEST_CASE("models of transformers give its logits and text") {
  for_each_folder([](const fs::path& folder) {
    models::Llama<Float32> model(models::llama_options(folder));
    models::load_pretrained(model, folder);
    const SafetensorsFile expected(folder / "expected.safetensors");
    const auto tokens = read_windows(expected);
    const auto logits = model.logits(tokens).value();
    CHECK(tests::mismatch(logits.span(), tests::read_floats(expected, "logits"), {.atol = 1e-4, .rtol = 0}) == "");

    const auto greedy = read_tokens(expected, "greedy");
    const std::vector<std::int32_t> prompt(tokens.data(), tokens.data() + 5);
    const auto text = models::generate(model, prompt, {.count = std::ssize(greedy), .temperature = 0});
    REQUIRE(expected.read_values<double>("greedy_margin").front() > 1e-4);
    CHECK(text == greedy);
  });
}

TEST_CASE("models of transformers give the logits of texts that lie in one row") {
  for_each_folder([](const fs::path& folder) {
    models::Llama<Float32> model(models::llama_options(folder));
    models::load_pretrained(model, folder);
    const SafetensorsFile expected(folder / "expected.safetensors");
    const auto tokens = read_windows(expected);
    const std::int64_t rows = tokens.dim(0), time = tokens.dim(1);
    REQUIRE(rows * time <= model.options().block);
    Tensor<std::int32_t> starts({1, rows * time});
    for (std::int64_t i = 0; i < rows * time; ++i) starts.data()[i] = static_cast<std::int32_t>(i / time * time);
    const auto logits = model.forward({.tokens = tokens.reshape({1, rows * time}), .document_starts = starts}).value();
    CHECK(tests::mismatch(logits.span(), tests::read_floats(expected, "logits"), {.atol = 1e-4, .rtol = 0}) == "");
  });
}

TEST_CASE("experts of a limited capacity leave out what they do in transformers") {
  int models_with_experts = 0;
  for_each_folder([&](const fs::path& folder) {
    models::LlamaOptions options = models::llama_options(folder);
    if (options.experts.count == 0) return;
    ++models_with_experts;
    options.experts.capacity_factor = tests::read_json(folder.parent_path() / "models.json").at("capacity_factor");
    models::Llama<Float32> model(options);
    models::load_pretrained(model, folder);
    const SafetensorsFile expected(folder / "expected.safetensors");
    const auto logits = model.logits(read_windows(expected)).value();
    const auto wanted = tests::read_floats(expected, "capacity_logits");
    CHECK(tests::mismatch(logits.span(), wanted, {.atol = 1e-4, .rtol = 0}) == "");
    CHECK(tests::mismatch(tests::read_floats(expected, "logits"), wanted, {.atol = 1e-2, .rtol = 0}) != "");
  });
  CHECK(models_with_experts >= 4);
}

TEST_CASE("models of transformers in mixed precision give nearly its logits") {
  const auto check = [](auto precision, double bound) {
    using P = decltype(precision);
    for_each_folder([bound](const fs::path& folder) {
      models::Llama<P> model(models::llama_options(folder));
      models::load_pretrained(model, folder);
      const SafetensorsFile expected(folder / "expected.safetensors");
      const auto logits = model.logits(read_windows(expected)).value();
      const auto wanted = tests::read_floats(expected, "logits");
      double error = 0, norm = 0;
      for (std::size_t i = 0; i < wanted.size(); ++i) {
        error += std::pow(static_cast<float>(logits.span()[i]) - wanted[i], 2);
        norm += std::pow(wanted[i], 2);
      }
      const bool has_experts = model.options().experts.count > 0;  // some tokens choose others of them
      CHECK(std::sqrt(error / norm) < (has_experts ? 4 * bound : bound));
    });
  };
  check(MixedBfloat16{}, 0.03);
  check(MixedFloat16{}, 0.004);
}

TEST_CASE("a folder is written as it was read") {
  for_each_folder([](const fs::path& folder) {
    const models::LlamaOptions options = models::llama_options(folder);
    models::Llama<Float32> model(options);
    models::load_pretrained(model, folder);
    const tests::TemporaryFolder written;
    const DType dtype = tests::read_json(folder / "config.json").at("dtype") == "bfloat16"  ? DType::bfloat16
                        : tests::read_json(folder / "config.json").at("dtype") == "float16" ? DType::float16
                                                                                            : DType::float32;
    models::save_pretrained(model, written.path(), {.dtype = dtype, .from = folder});
    const SafetensorsFile copy(written.path() / "model.safetensors");
    std::size_t tensors = 0;
    for (const auto& file : fs::directory_iterator(folder)) {
      if (!file.path().filename().string().starts_with("model") || file.path().extension() != ".safetensors") continue;
      const SafetensorsFile original(file.path());
      for (const SafetensorsEntry& tensor : original.tensors()) {
        CAPTURE(tensor.name);
        ++tensors;
        REQUIRE(copy.find(tensor.name) != nullptr);
        CHECK(copy.at(tensor.name).dtype == tensor.dtype);
        CHECK(copy.at(tensor.name).shape == tensor.shape);
        CHECK(copy.read_bytes(tensor.name) == original.read_bytes(tensor.name));
      }
    }
    CHECK(copy.tensors().size() == tensors);

    // The written config keeps every value of the folder's config; keys that the folder leaves to their defaults may differ.
    const json before = tests::read_json(folder / "config.json");
    const json after = tests::read_json(written.path() / "config.json");
    for (const auto& [key, value] : after.items()) {
      CAPTURE(key);
      const bool told = before.contains(key) && !before.at(key).is_null();
      if (told && key != "rope_parameters") CHECK(before.at(key) == value);
    }
    models::Llama<Float32> again(models::llama_options(written.path()));
    models::load_pretrained(again, written.path());
    const SafetensorsFile expected(folder / "expected.safetensors");
    const auto tokens = read_windows(expected);
    const auto logits = again.logits(tokens).value(), wanted = model.logits(tokens).value();
    CHECK(std::ranges::equal(logits.span(), wanted.span()));
  });
}
