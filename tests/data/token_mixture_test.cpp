#include "trireme/data/documents/token_mixture.hpp"

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "catch.hpp"
#include "temporary_folder.hpp"
#include "trireme/core/error.hpp"
#include "trireme/data/loaders/loader.hpp"

using namespace trireme;
using namespace trireme::data;

namespace {

void write_documents(const std::filesystem::path& file, std::int64_t documents) {
  std::filesystem::create_directories(file.parent_path());
  std::vector<std::int32_t> tokens;
  std::vector<std::int64_t> ends;
  for (std::int64_t number = 0; number < documents; ++number) {
    tokens.insert(tokens.end(), static_cast<std::size_t>(number % 7 + 1), static_cast<std::int32_t>(number));
    ends.push_back(std::ssize(tokens));
  }
  write_token_shard(file, tokens, ends, {}, 1000);
}

}  // namespace

TEST_CASE("a mixture file names parts, weights and when they change") {
  const tests::TemporaryFolder folder;
  write_documents(folder.path() / "a-0.safetensors", 20);
  write_documents(folder.path() / "a-1.safetensors", 20);
  write_documents(folder.path() / "b/x.safetensors", 50);
  std::ofstream(folder.path() / "mix.json") << R"({"parts": [{"data": "a-{0..1}.safetensors", "weight": 1},
      {"name": "bees", "data": "b", "weight": 3}], "weights_from_step": {"20": [1, 0], "10": [0.5, 0.5]}})";
  const TokenMixture mixture = open_token_mixture((folder.path() / "mix.json").string(), {.length = 16});
  CHECK(mixture.names == std::vector<std::string>{"a-{0..1}.safetensors", "bees"});
  CHECK(mixture.rows.part(0).documents().size() == 40);
  CHECK(mixture.rows.part(1).documents().size() == 50);
  REQUIRE(mixture.weights.size() == 3);
  CHECK(mixture.weights[0].weights == std::vector<double>{1, 3});
  CHECK(mixture.weights[1].from_step == 10);
  CHECK(mixture.weights[2].from_step == 20);
  const Loader loader(mixture.rows, {.batch = {.batch_size = 4}, .mixture = mixture.weights});
  CHECK(loader.tokens_per_sample() == 16);
  CHECK(loader.load(15).rows() == 4);

  std::ofstream(folder.path() / "other.json") << R"({"parts": [{"data": "a-{0..1}.safetensors", "weight": 1},
      {"name": "bees", "data": "b", "weight": 3}], "weights_from_step": {"20": [1, 0], "11": [0.5, 0.5]}})";
  const TokenMixture other = open_token_mixture((folder.path() / "other.json").string(), {.length = 16});
  CHECK(content_of(other.rows) == content_of(mixture.rows));
  CHECK(content_of(other) != content_of(mixture));

  const TokenMixture single = open_token_mixture((folder.path() / "a-{0..1}.safetensors").string(), {.length = 16});
  CHECK(single.weights.empty());
  CHECK(content_of(single) == content_of(single.rows));
  CHECK(single.rows.size() == mixture.rows.part(0).size());
}

TEST_CASE("mixture files that say something else are refused with their name") {
  const tests::TemporaryFolder folder;
  write_documents(folder.path() / "a.safetensors", 5);
  const std::string good = R"({"data": "a.safetensors", "weight": 1})";
  for (const std::string& text :
       {std::string(), std::string("[]"), std::string("{}"), std::string(R"({"parts": []})"), std::string(R"({"parts": {}})"),
        std::string(R"({"parts": [1]})"), std::string(R"({"parts": [{"data": "a.safetensors"}]})"),
        std::string(R"({"parts": [{"weight": 1}]})"), std::string(R"({"parts": [{"data": "", "weight": 1}]})"),
        std::string(R"({"parts": [{"data": "a.safetensors", "weight": "1"}]})"),
        std::string(R"({"parts": [{"data": "a.safetensors", "weight": 1, "wieght": 2}]})"),
        R"({"parts": [)" + good + R"(], "from": 1})", R"({"parts": [)" + good + R"(], "weights_from_step": []})",
        R"({"parts": [)" + good + R"(], "weights_from_step": {"x": [1]}})",
        R"({"parts": [)" + good + R"(], "weights_from_step": {"5": [1, 2]}})",
        R"({"parts": [)" + good + R"(], "weights_from_step": {"5": ["a"]}})"}) {
    INFO(text);
    std::ofstream(folder.path() / "mix.json") << text;
    try {
      open_token_mixture((folder.path() / "mix.json").string(), {});
      FAIL("it was taken");
    } catch (const Error& error) {
      CHECK(error.code() == ErrorCode::invalid_argument);
      CHECK(error.fields().path == (folder.path() / "mix.json").string());
    }
  }
}
