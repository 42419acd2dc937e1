#include "trireme/models/architectures/bert.hpp"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <set>

#include "catch.hpp"
#include "fixtures.hpp"
#include "temporary_folder.hpp"
#include "trireme/models/folders/hugging_face.hpp"

using namespace trireme;
using nlohmann::json;

namespace {

Tensor<std::int32_t> read_integers(const SafetensorsFile& file, const char* name) {
  return Tensor<std::int32_t>::from(file.at(name).shape, file.read_values<std::int32_t>(name));
}

data::TextBatch batch_of(const SafetensorsFile& file) {
  return {.tokens = read_integers(file, "tokens"),
          .targets = read_integers(file, "targets"),
          .key_padding_mask = read_integers(file, "padding"),
          .token_types = read_integers(file, "types")};
}

template <typename P>
std::vector<float> logits_of(const tests::ModelFolder& folder) {
  models::Bert<P> model(models::bert_options(folder.path));
  models::load_pretrained(model, folder.path);
  const auto logits = model.forward(batch_of(folder.expected())).value();
  std::vector<float> values;
  for (const auto value : logits.span()) values.push_back(static_cast<float>(value));
  return values;
}

double relative_error(const std::vector<float>& got, const std::vector<float>& wanted) {
  double error = 0, norm = 0;
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    error += std::pow(got[i] - wanted[i], 2);
    norm += std::pow(wanted[i], 2);
  }
  return std::sqrt(error / norm);
}

tests::ModelFolder folder_named(const std::string& name) {
  for (const tests::ModelFolder& folder : tests::model_folders("folders_of_bert")) {
    if (folder.name() == name) return folder;
  }
  throw Error({.message = "no such folder", .name = name});
}

}  // namespace

TEST_CASE("BERTs of transformers give its logits of padded texts") {
  for (const tests::ModelFolder& folder : tests::model_folders("folders_of_bert")) {
    CAPTURE(folder.name());
    const auto wanted = tests::read_floats(folder.expected(), "logits");
    CHECK(tests::mismatch(logits_of<Float32>(folder), wanted, {.atol = 1e-4, .rtol = 0}) == "");
    CHECK(relative_error(logits_of<MixedBfloat16>(folder), wanted) < 0.03);
    CHECK(relative_error(logits_of<MixedFloat16>(folder), wanted) < 0.004);
  }
}

TEST_CASE("the folder of a BERT is written as it was read") {
  for (const tests::ModelFolder& folder : tests::model_folders("folders_of_bert")) {
    CAPTURE(folder.name());
    models::Bert<Float32> model(models::bert_options(folder.path));
    models::load_pretrained(model, folder.path);
    const json before = tests::read_json(folder.path / "config.json");
    const tests::TemporaryFolder written;
    models::save_pretrained(model, written.path(),
                            {.dtype = before.at("dtype") == "float16" ? DType::float16 : DType::float32, .from = folder.path});
    const SafetensorsFile original(folder.path / "model.safetensors"), copy(written.path() / "model.safetensors");
    CHECK(tests::differing_tensors(original, copy).empty());
    const json after = tests::read_json(written.path() / "config.json");
    for (const auto& [key, value] : after.items()) {
      CAPTURE(key);
      REQUIRE(before.contains(key));
      CHECK(before.at(key) == value);
    }
  }
}

TEST_CASE("a pretrained BERT takes a classifier") {
  const tests::ModelFolder folder = folder_named("masked");
  models::BertOptions options = models::bert_options(folder.path);
  options.classes = 3;
  models::Bert<Float32> model(options);
  model.initialize();
  CHECK_THROWS_WITH(models::load_pretrained(model, folder.path), ContainsSubstring("classifier.weight"));
  const auto loaded = models::load_pretrained(model, folder.path, {.allow_missing = true});
  CHECK(std::set(loaded.missing.begin(), loaded.missing.end()) ==
        std::set<std::string>{"bert.pooler.dense.bias", "bert.pooler.dense.weight", "classifier.bias", "classifier.weight"});
  CHECK(loaded.unexpected.size() == 5);
  CHECK(model.forward(batch_of(folder.expected())).shape() == Shape{4, 3});
}

TEST_CASE("names of the first BERTs are known, copies of tied weights and other heads passed over") {
  const tests::ModelFolder folder = folder_named("masked");
  const SafetensorsFile file(folder.path / "model.safetensors");
  std::vector<std::vector<float>> values;
  std::vector<TensorRef> tensors;
  for (const SafetensorsEntry& tensor : file.tensors()) {
    std::string name = tensor.name;
    if (const std::size_t at = name.find("LayerNorm.weight"); at != std::string::npos) name.replace(at, 16, "LayerNorm.gamma");
    if (const std::size_t at = name.find("LayerNorm.bias"); at != std::string::npos) name.replace(at, 14, "LayerNorm.beta");
    values.push_back(tests::read_floats(file, tensor.name));
    tensors.push_back({.name = name, .dtype = DType::float32, .shape = tensor.shape});
    if (name != "bert.embeddings.word_embeddings.weight") continue;
    values.push_back(values.back());
    tensors.push_back({.name = "cls.predictions.decoder.weight", .dtype = DType::float32, .shape = tensor.shape});
  }
  for (const char* const name : {"cls.seq_relationship.weight", "cls.seq_relationship.bias", "bert.pooler.dense.weight"}) {
    values.push_back({1, 2});
    tensors.push_back({.name = name, .dtype = DType::float32, .shape = {1, 2}});
  }
  for (std::size_t i = 0; i < tensors.size(); ++i) tensors[i].data = values[i].data();
  const tests::TemporaryFolder older;
  write_safetensors(older.path() / "model.safetensors", tensors);
  models::Bert<Float32> model(models::bert_options(folder.path)), wanted(models::bert_options(folder.path));
  models::load_pretrained(model, older.path());
  models::load_pretrained(wanted, folder.path);
  const auto batch = batch_of(folder.expected());
  CHECK(std::ranges::equal(model.forward(batch).value().span(), wanted.forward(batch).value().span()));
  const auto copy = std::ranges::find(tensors, "cls.predictions.decoder.weight", &TensorRef::name);
  values[static_cast<std::size_t>(copy - tensors.begin())][3] += 1;
  write_safetensors(older.path() / "model.safetensors", tensors);
  CHECK_THROWS_WITH(models::load_pretrained(model, older.path()), ContainsSubstring("the file has two with different values") &&
                                                                      ContainsSubstring("cls.predictions.decoder.weight"));
}

TEST_CASE("configs of other BERTs are refused by name") {
  const json config = tests::read_json(folder_named("classifier").path / "config.json");
  const tests::TemporaryFolder folder;
  const auto refused = [&](const char* key, const json& value) {
    CAPTURE(key);
    json changed = config;
    changed[key] = value;
    std::ofstream(folder.path() / "config.json") << changed.dump();
    CHECK_THROWS_WITH(models::bert_options(folder.path()), ContainsSubstring(key));
  };
  refused("model_type", "roberta");
  refused("hidden_act", "quick_gelu");
  refused("position_embedding_type", "relative_key");
  refused("is_decoder", true);
  refused("add_cross_attention", true);
  refused("tie_word_embeddings", false);
  refused("num_attention_heads", 5);
  refused("problem_type", "regression");
  refused("classifier_dropout", 1);
  refused("hidden_dropout_prob", -0.1);
  refused("id2label", {{"0", "one"}});
  refused("embedding_size", 16);
}

TEST_CASE("BERTs of wrong sizes or batches are refused") {
  using Bert = models::Bert<Float32>;
  CHECK_THROWS_WITH(Bert({.classes = 1}), ContainsSubstring("2 classes or more"));
  const Bert model({.layers = 1, .heads = 2, .width = 16, .hidden = 16, .vocabulary = 9, .block = 4});
  model.store().initialize<float>(7);
  const auto tokens = Tensor<std::int32_t>::zeros({1, 3});
  CHECK_THROWS_WITH(model.logits(Tensor<std::int32_t>::zeros({1, 5})), ContainsSubstring("a model of 4 positions"));
  CHECK_THROWS_WITH(model.forward({.tokens = tokens, .token_types = Tensor<std::int32_t>::zeros({1, 2})}),
                    ContainsSubstring("have token types [1, 2]"));
}

TEST_CASE("dropout of a BERT is drawn in training alone") {
  models::BertOptions options{.layers = 1,
                              .heads = 2,
                              .width = 16,
                              .hidden = 16,
                              .vocabulary = 9,
                              .block = 4,
                              .dropout = 0.5,
                              .attention_dropout = 0.5,
                              .classes = 2};
  models::Bert<Float32> model(options);
  options.dropout = options.attention_dropout = 0;
  models::Bert<Float32> plain(options);
  model.initialize();
  plain.initialize();
  const auto tokens = Tensor<std::int32_t>::full({2, 4}, 3);
  const auto wanted = plain.logits(tokens).value();
  CHECK(std::ranges::equal(model.logits(tokens).value().span(), wanted.span()));
  const Tape tape(TapeOptions{});
  CHECK(!std::ranges::equal(model.logits(tokens).value().span(), wanted.span()));
}
