#include "trireme/models/architectures/vision_transformer.hpp"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <functional>
#include <set>

#include "catch.hpp"
#include "fixtures.hpp"
#include "temporary_folder.hpp"
#include "trireme/models/folders/hugging_face.hpp"
#include "trireme/nn/weights/weights.hpp"

using namespace trireme;
using nlohmann::json;

namespace {

namespace fs = std::filesystem;

void for_each_folder(const std::function<void(const fs::path& folder)>& check) {
  for (const tests::ModelFolder& folder : tests::model_folders("folders_of_vit")) {
    CAPTURE(folder.name());
    check(folder.path);
  }
}

fs::path folder_named(const char* name) {
  fs::path found;
  for_each_folder([&](const fs::path& folder) {
    if (folder.filename() == name) found = folder;
  });
  return found;
}

Tensor<float> read_images(const SafetensorsFile& file) {
  return Tensor<float>::from(file.at("images").shape, tests::read_floats(file, "images"));
}

template <typename P>
double relative_error(const fs::path& folder) {
  models::VisionTransformer<P> model(models::vit_options(folder));
  models::load_pretrained(model, folder);
  const SafetensorsFile expected(folder / "expected.safetensors");
  const auto logits = model.logits(read_images(expected)).value();
  const auto wanted = tests::read_floats(expected, "logits");
  double error = 0, norm = 0;
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    error += std::pow(static_cast<float>(logits.span()[i]) - wanted[i], 2);
    norm += std::pow(wanted[i], 2);
  }
  return std::sqrt(error / norm);
}

const models::VisionTransformerOptions small{
    .layers = 2, .heads = 2, .width = 32, .hidden = 64, .image_size = 8, .patch_size = 4, .classes = 3};

}  // namespace

TEST_CASE("vision transformers of transformers give its logits") {
  for_each_folder([](const fs::path& folder) {
    models::VisionTransformer<Float32> model(models::vit_options(folder));
    models::load_pretrained(model, folder);
    const SafetensorsFile expected(folder / "expected.safetensors");
    const auto logits = model.logits(read_images(expected)).value();
    CHECK(tests::mismatch(logits.span(), tests::read_floats(expected, "logits"), {.atol = 1e-4, .rtol = 0}) == "");
    CHECK(relative_error<MixedBfloat16>(folder) < 0.03);
    CHECK(relative_error<MixedFloat16>(folder) < 0.004);
  });
}

TEST_CASE("the folder of a vision transformer is written as it was read") {
  for_each_folder([](const fs::path& folder) {
    const auto options = models::vit_options(folder);
    models::VisionTransformer<Float32> model(options);
    models::load_pretrained(model, folder);
    const tests::TemporaryFolder written;
    const json before = tests::read_json(folder / "config.json");
    const DType dtype = before.at("dtype") == "bfloat16" ? DType::bfloat16 : DType::float32;
    models::save_pretrained(model, written.path(), {.dtype = dtype});
    const SafetensorsFile original(folder / "model.safetensors"), copy(written.path() / "model.safetensors");
    CHECK(tests::differing_tensors(original, copy).empty());
    const json after = tests::read_json(written.path() / "config.json");
    for (const auto& [key, value] : after.items()) {
      CAPTURE(key);
      REQUIRE(before.contains(key));
      if (key != "hidden_act") CHECK(before.at(key) == value);
    }
    CHECK(models::vit_options(written.path()).labels == std::vector<std::string>{"cat", "dog", "bird", "fish", "newt"});
    CHECK(models::vit_options(written.path()).activation == options.activation);
  });
}

TEST_CASE("a vision transformer takes another head") {
  const fs::path folder = folder_named("vit");
  auto options = models::vit_options(folder);
  options.classes = 7;
  options.labels = {};
  models::VisionTransformer<Float32> model(options);
  model.initialize();
  CHECK_THROWS_WITH(models::load_pretrained(model, folder), ContainsSubstring("classifier.weight"));
  const auto loaded = models::load_pretrained(model, folder, {.allow_missing = true});
  const std::vector<std::string> head{"classifier.bias", "classifier.weight"};
  CHECK(std::set(loaded.missing.begin(), loaded.missing.end()) == std::set(head.begin(), head.end()));
  CHECK(loaded.unexpected == head);
  const SafetensorsFile file(folder / "model.safetensors");
  CHECK(model.store().read_values<float>(model.store().find("vit.layernorm.weight")).span()[3] ==
        tests::read_floats(file, "vit.layernorm.weight")[3]);
  CHECK(model.logits(read_images(SafetensorsFile(folder / "expected.safetensors"))).shape() == Shape{4, 7});
}

TEST_CASE("configs of other vision transformers are refused by name") {
  const json config = tests::read_json(folder_named("vit") / "config.json");
  const tests::TemporaryFolder folder;
  const auto refused = [&](const char* key, const json& value) {
    CAPTURE(key);
    json changed = config;
    changed[key] = value;
    std::ofstream(folder.path() / "config.json") << changed.dump();
    CHECK_THROWS_WITH(models::vit_options(folder.path()), ContainsSubstring(key));
  };
  refused("model_type", "swin");
  refused("hidden_act", "quick_gelu");
  refused("qkv_bias", false);
  refused("image_size", {12, 12});
  refused("patch_size", 5);
  refused("num_attention_heads", 5);
  refused("layer_norm_eps", -1);
  refused("hidden_dropout_prob", 1);
  refused("layer_scale", 0.1);
  refused("id2label", {{"0", "cat"}, {"2", "dog"}});
  refused("quantization_config", {{"bits", 4}});
}

TEST_CASE("what a config leaves out is as transformers has it") {
  const tests::TemporaryFolder folder;
  std::ofstream(folder.path() / "config.json") << R"({"model_type": "vit"})";
  const auto options = models::vit_options(folder.path());
  CHECK(options.epsilon == 1e-12);
  CHECK(options.width == 768);
  CHECK(options.patch_size == 16);
  CHECK(options.classes == 2);
  CHECK(options.activation == ops::Activation::gelu_erf);
  // These are no names.
  std::ofstream(folder.path() / "config.json")
      << R"({"model_type": "vit", "id2label": {"0": "LABEL_0", "1": "LABEL_1", "2": "LABEL_2"}})";
  const auto unnamed = models::vit_options(folder.path());
  CHECK(unnamed.classes == 3);
  CHECK(unnamed.labels.empty());
}

TEST_CASE("images are normalised as the folder says") {
  const tests::TemporaryFolder folder;
  CHECK(!models::image_normalization(folder.path()));
  const auto with = [&](const char* text) {
    std::ofstream(folder.path() / "preprocessor_config.json") << text;
    return models::image_normalization(folder.path());
  };
  const auto known = with(R"({"image_mean": [0.5, 0.25], "image_std": [0.5, 0.125], "size": 224, "resample": 2})");
  REQUIRE(known);
  CHECK(known->mean == std::vector<float>{0.5F, 0.25F});
  CHECK(known->std == std::vector<float>{0.5F, 0.125F});
  CHECK(with(R"({"do_normalize": false})")->mean.empty());
  CHECK_THROWS_WITH(with(R"({"image_std": [1]})"), ContainsSubstring("image_mean"));
  CHECK_THROWS_WITH(with(R"({"image_mean": ["a"], "image_std": [1]})"), ContainsSubstring("image_mean"));
  CHECK_THROWS_WITH(with(R"({"do_rescale": false})"), ContainsSubstring("the config of an image processor"));
  CHECK_THROWS_WITH(with(R"({"do_rescale": false})"), ContainsSubstring("do_rescale"));
  CHECK_THROWS_WITH(with(R"({"rescale_factor": 1})"), ContainsSubstring("rescale_factor"));
}

TEST_CASE("initial values of a vision transformer are those of transformers") {
  models::VisionTransformer<Float32> model({.layers = 1, .heads = 4, .width = 256, .hidden = 512, .image_size = 32});
  model.initialize();
  FlatStore& store = model.store();
  for (int index = 0; index < store.num_parameters(); ++index) {
    const ParameterInfo& parameter = store.parameter(index);
    CAPTURE(parameter.name);
    const auto values = store.read_values<float>(index);
    double sum = 0, squares = 0;
    for (const float value : values.span()) sum += value, squares += value * value;
    const double count = static_cast<double>(values.numel());
    const bool is_norm = parameter.name.find("norm") != std::string::npos && parameter.name.ends_with("weight");
    const double deviation = parameter.name.ends_with("bias") || is_norm ? 0 : 0.02;
    CHECK(std::abs(sum / count - (is_norm ? 1 : 0)) < 5 * deviation / std::sqrt(count) + 1e-9);
    if (!is_norm) CHECK(std::abs(std::sqrt(squares / count) - deviation) < 4 * deviation / std::sqrt(2 * count) + 1e-9);
  }
}

TEST_CASE("dropout of a vision transformer is drawn in training alone") {
  models::VisionTransformerOptions options = small;
  options.dropout = 0.5;
  models::VisionTransformer<Float32> model(options), plain(small);
  model.initialize();
  plain.initialize();
  const auto images = Tensor<float>::full({2, 8, 8, 3}, 0.5F);
  const auto wanted = plain.logits(images).value();
  CHECK(std::ranges::equal(model.logits(images).value().span(), wanted.span()));
  const Tape tape(TapeOptions{});
  CHECK(!std::ranges::equal(model.logits(images).value().span(), wanted.span()));
}

TEST_CASE("vision transformers of wrong sizes or images are refused") {
  using Vit = models::VisionTransformer<Float32>;
  CHECK_THROWS_WITH(Vit({.image_size = 30}), ContainsSubstring("images of 30 x 30 and patches of 16 x 16"));
  CHECK_THROWS_WITH(Vit({.classes = 3, .labels = {"a"}}), ContainsSubstring("3 classes or none, got 1 labels"));
  const Vit model(small);
  CHECK_THROWS_WITH(model.logits(Tensor<float>::zeros({1, 8, 12, 3})), ContainsSubstring("reads images [batch, 8, 8, 3]"));
}

TEST_CASE("a saved model says how its images are normalised, unless it came from a folder that does") {
  const models::VisionTransformer<Float32> model(
      {.layers = 1, .heads = 1, .width = 4, .hidden = 4, .image_size = 8, .patch_size = 4, .classes = 2});
  const data::Normalization normalization{.mean = {0.1F, 0.2F, 0.3F}, .std = {0.4F, 0.5F, 0.6F}};
  const tests::TemporaryFolder first, second;
  const auto file = [](const tests::TemporaryFolder& folder) { return folder.path() / "preprocessor_config.json"; };
  models::save_pretrained(model, first.path());
  CHECK(!std::filesystem::exists(file(first)));
  models::save_pretrained(model, first.path(), {.normalization = normalization});
  const auto known = models::image_normalization(first.path());
  REQUIRE(known);
  CHECK(known->mean == normalization.mean);
  CHECK(known->std == normalization.std);
  const json processor = tests::read_json(file(first));
  CHECK(processor.at("size") == json{{"height", 8}, {"width", 8}});
  CHECK(processor.at("resample") == 2);
  // What the folder says stays, in the folder itself too.
  const data::Normalization other{.mean = {0, 0, 0}, .std = {1, 1, 1}};
  models::save_pretrained(model, second.path(), {.from = first.path(), .normalization = other});
  CHECK(tests::read_json(file(second)) == processor);
  models::save_pretrained(model, first.path(), {.from = first.path(), .normalization = other});
  CHECK(tests::read_json(file(first)) == processor);
  models::save_pretrained(model, first.path(), {.normalization = data::Normalization()});
  CHECK(models::image_normalization(first.path())->mean.empty());
}

TEST_CASE("images are resized as the folder says") {
  const tests::TemporaryFolder folder;
  const auto of_224 = [&](const char* text) {
    std::ofstream(folder.path() / "preprocessor_config.json") << text;
    return models::image_resizing(folder.path(), 224);
  };
  const auto is = [](const data::Resizing& found, std::int64_t height, std::int64_t shorter, data::Resampling resampling) {
    return found.height == height && found.width == height && found.shorter == shorter && found.resampling == resampling;
  };
  using enum data::Resampling;
  CHECK(is(models::image_resizing(folder.path(), 224), 0, 0, bilinear));
  CHECK(is(of_224(R"({"size": 224, "resample": 2})"), 224, 0, bilinear));
  CHECK(is(of_224(R"({"size": {"height": 224, "width": 224}, "resample": 3})"), 224, 0, bicubic));
  CHECK(is(of_224(R"({"image_mean": [0.5]})"), 224, 0, bilinear));
  CHECK(is(of_224(R"({"feature_extractor_type": "DeiTFeatureExtractor"})"), 256, 0, bicubic));
  CHECK(is(of_224(R"({"size": {"shortest_edge": 248}, "do_center_crop": true, "crop_size": {"height": 224, "width": 224}})"), 0,
           248, bilinear));
  CHECK_THROWS_WITH(of_224(R"({"size": 256})"), ContainsSubstring("size") && ContainsSubstring("224"));
  CHECK_THROWS_WITH(of_224(R"({"size": {"shortest_edge": 224}})"), ContainsSubstring("size") && ContainsSubstring("224"));
  CHECK_THROWS_WITH(of_224(R"({"size": 200, "do_center_crop": true})"), ContainsSubstring("no less than crop_size"));
  CHECK_THROWS_WITH(of_224(R"({"do_center_crop": true, "crop_size": 200})"), ContainsSubstring("crop_size"));
  CHECK_THROWS_WITH(of_224(R"({"size": {"width": 224}})"), ContainsSubstring("height"));
  CHECK_THROWS_WITH(of_224(R"({"resample": 0})"), ContainsSubstring("2 or 3, bilinear or bicubic"));
  CHECK_THROWS_WITH(of_224(R"({"do_resize": false})"), ContainsSubstring("do_resize"));
}
