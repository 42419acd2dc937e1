#include <filesystem>
#include <fstream>
#include <map>
#include <string>

#include "catch.hpp"
#include "temporary_folder.hpp"
#include "trireme/models/folders/hugging_face.hpp"

// The model family of a folder's model_type.
using namespace trireme;
using models::Family;

namespace {

class Config {
 public:
  explicit Config(const char* text) { std::ofstream(folder_.path() / "config.json") << text; }
  const std::filesystem::path& path() const { return folder_.path(); }

 private:
  tests::TemporaryFolder folder_;
};

}  // namespace

TEST_CASE("a family is known by the model_type of a folder, or of its config") {
  CHECK(models::family_of(Config(R"({"model_type": "qwen3_moe"})").path()) == Family::llama);
  CHECK(models::family_of(Config(R"({"model_type": "mixtral"})").path()) == Family::llama);
  CHECK(models::family_of(Config(R"({"model_type": "gpt2"})").path()) == Family::gpt2);
  CHECK(models::family_of(Config(R"({"model_type": "gpt_neox"})").path()) == Family::gpt_neox);
  CHECK(models::family_of(Config(R"({"model_type": "bert"})").path()) == Family::bert);
  const Config deit(R"({"model_type": "deit"})");
  CHECK(models::family_of(deit.path() / "config.json") == Family::vit);
}

TEST_CASE("another model_type is refused by the list of those that are taken") {
  const Config gemma(R"({"model_type": "gemma3"})");
  CHECK_THROWS_WITH(
      models::family_of(gemma.path()),
      ContainsSubstring((gemma.path() / "config.json").string() +
                        "; wanted llama, mistral, mixtral, qwen2, qwen2_moe, qwen3, qwen3_moe, gpt2, gpt_neox, bert, "
                        "vit or deit; had \"gemma3\""));
  const std::map<Family, std::string> refused{{Family::bert, "a BERT continues no text"}, {Family::vit, "give --images"}};
  CHECK_THROWS_WITH(models::family_of(gemma.path(), refused),
                    ContainsSubstring("qwen3_moe, gpt2 or gpt_neox; had \"gemma3\"") && !ContainsSubstring("a BERT"));
  CHECK_THROWS_WITH(models::family_of(Config(R"({"model_type": "deit"})").path(), refused),
                    ContainsSubstring("qwen3_moe, gpt2 or gpt_neox; had \"deit\"; give --images"));
  CHECK_THROWS_WITH(models::bert_options(gemma.path()), ContainsSubstring("wanted bert; had \"gemma3\""));
  CHECK_THROWS_WITH(models::vit_options(gemma.path()), ContainsSubstring("wanted vit or deit; had \"gemma3\""));
  CHECK_THROWS_WITH(models::llama_options(Config(R"({"model_type": "llama_moe"})").path()),
                    ContainsSubstring("qwen3 or qwen3_moe; had \"llama_moe\""));
  CHECK_THROWS_WITH(models::family_of(Config("{}").path()), ContainsSubstring("name model_type"));
}
