// Folders of a model without its head, whose tensors have names without the prefix.
#include <filesystem>
#include <set>

#include "catch.hpp"
#include "fixtures.hpp"
#include "temporary_folder.hpp"
#include "trireme/models/folders/hugging_face.hpp"

using namespace trireme;

namespace {

using Names = std::set<std::string>;

// Writes the tensors of a file with the prefix, without it, as a base model has them; returns the rest, the head.
Names write_base(const std::filesystem::path& folder, const std::string& prefix, const std::filesystem::path& base) {
  const SafetensorsFile file(folder / "model.safetensors");
  Names head;
  std::vector<std::vector<float>> values;
  std::vector<TensorRef> tensors;
  for (const SafetensorsEntry& tensor : file.tensors()) {
    if (!tensor.name.starts_with(prefix)) {
      head.insert(tensor.name);
      continue;
    }
    values.push_back(tests::read_floats(file, tensor.name));
    tensors.push_back({.name = tensor.name.substr(prefix.size()), .dtype = DType::float32, .shape = tensor.shape});
  }
  for (std::size_t i = 0; i < tensors.size(); ++i) tensors[i].data = values[i].data();
  write_safetensors(base / "model.safetensors", tensors);
  return head;
}

template <typename Net, typename Options>
void check_base(const char* kind, const std::string& prefix, Options (*read_options)(const Location&), const char* model_type) {
  int count = 0;
  for (const tests::ModelFolder& folder : tests::model_folders(kind)) {
    if (models::model_type(folder.path) != model_type) continue;
    if (!std::filesystem::exists(folder.path / "model.safetensors")) continue;  // shards
    CAPTURE(folder.name());
    const Options options = read_options(folder.path);
    const tests::TemporaryFolder base, written;
    const Names head = write_base(folder.path, prefix, base.path());
    Net model(options);
    model.initialize();
    if (!head.empty()) CHECK_THROWS_WITH(models::load_pretrained(model, base.path()), ContainsSubstring(*head.begin()));
    const nn::LoadedWeights loaded = models::load_pretrained(model, base.path(), {.allow_missing = true});
    CHECK(Names(loaded.missing.begin(), loaded.missing.end()) == head);
    CHECK(loaded.unexpected.empty());
    Net whole(options);
    models::load_pretrained(whole, folder.path);
    models::save_pretrained(model, written.path());
    models::save_pretrained(whole, base.path());
    const auto differing = tests::differing_tensors(SafetensorsFile(base.path() / "model.safetensors"),
                                                    SafetensorsFile(written.path() / "model.safetensors"));
    for (const std::string& name : differing) CHECK(head.contains(name));
    ++count;
  }
  CHECK(count > 0);
}

}  // namespace

TEST_CASE("a model is filled by the folder of its base") {
  check_base<models::Llama<Float32>>("folders_of_transformers", "model.", models::llama_options, "llama");
  check_base<models::Bert<Float32>>("folders_of_bert", "bert.", models::bert_options, "bert");
  check_base<models::VisionTransformer<Float32>>("folders_of_vit", "vit.", models::vit_options, "vit");
  check_base<models::VisionTransformer<Float32>>("folders_of_vit", "deit.", models::vit_options, "deit");
  check_base<models::Gpt<Float32>>("folders_of_gpt", "transformer.", models::gpt_options, "gpt2");
  check_base<models::GptNeoX<Float32>>("folders_of_gpt", "gpt_neox.", models::gpt_neox_options, "gpt_neox");
}

TEST_CASE("a folder without any tensor of the model is refused though some may be missing") {
  const tests::ModelFolder other = tests::model_folders("folders_of_vit").front();
  models::Bert<Float32> model(models::bert_options(tests::model_folders("folders_of_bert").front().path));
  model.initialize();
  CHECK_THROWS_WITH(models::load_pretrained(model, other.path, {.allow_missing = true}),
                    ContainsSubstring("holds no tensor of the model; name "));
}
