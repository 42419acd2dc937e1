#include <fmt/format.h>

#include <fstream>
#include <map>
#include <string>
#include <vector>

#include "catch.hpp"
#include "fixtures.hpp"
#include "temporary_folder.hpp"
#include "trireme/tokenizers/files/read_tokenizer.hpp"
#include "trireme/tokenizers/training/train_bpe.hpp"

using namespace trireme;
using nlohmann::json;

namespace {

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines(1);
  for (const char byte : text) {
    lines.back() += byte;
    if (byte == '\n') lines.emplace_back();
  }
  return lines;
}

}  // namespace

TEST_CASE("training gives the vocabulary and the merges of tokenizers") {
  const std::map<std::string, std::string> patterns{
      {"gpt2", tokenizers::patterns::gpt2}, {"llama3", tokenizers::patterns::cl100k}, {"qwen2", tokenizers::patterns::qwen2}};
  const tests::TemporaryFolder folder;
  int runs = 0;
  for (const tests::Fixture& set : tests::fixtures_of_kind("tokenizer_training")) {
    const json content = tests::read_json(set.file);
    for (const json& expected : content.at("trained")) {
      const std::string name = expected.at("text"), text = content.at("texts").at(name), rules = expected.at("rules");
      CAPTURE(name, rules);
      const auto texts = expected.at("by_lines") ? lines_of(text) : std::vector<std::string>{text};
      const auto trained = tokenizers::train_bpe(texts, {.vocabulary_size = expected.at("vocabulary_size"),
                                                         .min_frequency = expected.at("min_frequency"),
                                                         .special_tokens = expected.at("special_tokens"),
                                                         .pattern = patterns.at(rules)});
      CHECK(trained.tokens == expected.at("vocabulary").get<std::vector<std::string>>());
      std::vector<std::string> merges;
      for (const auto& [left, right] : trained.merges) {
        merges.push_back(trained.tokens[static_cast<std::size_t>(left)] + " " +
                         trained.tokens[static_cast<std::size_t>(right)]);
      }
      CHECK(merges == expected.at("merges").get<std::vector<std::string>>());

      std::ofstream(folder.path() / "tokenizer.json") << trained.tokenizer_json();
      const auto tokenizer = tokenizers::read_tokenizer(folder.path());
      std::vector<std::int32_t> tokens = tokenizer.encode(text);
      CHECK(tokenizer.decode(tokens) == text);
      tokens.resize(std::min<std::size_t>(tokens.size(), 200));
      CHECK(tokens == expected.at("tokens").get<std::vector<std::int32_t>>());
      ++runs;
    }
  }
  CHECK(runs >= 12);
}
