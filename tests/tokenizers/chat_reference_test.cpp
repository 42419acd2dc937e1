#include <string>
#include <vector>

#include "catch.hpp"
#include "fixtures.hpp"
#include "trireme/tokenizers/chat/chat_template.hpp"
#include "trireme/tokenizers/files/read_tokenizer.hpp"

using namespace trireme;
using nlohmann::json;

namespace {

std::vector<tokenizers::Message> messages_of(const json& conversation) {
  std::vector<tokenizers::Message> messages;
  for (const json& message : conversation) messages.push_back({.role = message.at("role"), .content = message.at("content")});
  return messages;
}

}  // namespace

TEST_CASE("chat templates give the texts, tokens and assistant masks of transformers") {
  for (const tests::Fixture& set : tests::fixtures_of_kind("conversations")) {
    const json expected = tests::read_json(set.file);
    int compared = 0;
    for (const auto& [folder, templates] : expected.at("tokenizers").items()) {
      const std::filesystem::path path = set.file.parent_path() / folder;
      const auto tokenizer = tokenizers::read_tokenizer(path);
      for (const auto& [name, wanted] : templates.items()) {
        const tokenizers::ChatTemplate chat(name, tokenizer, tokenizers::text_marks(tokenizer, path));
        CHECK(chat.jinja() == wanted.at("written").get<std::string>());
        for (std::size_t at = 0; at < wanted.at("results").size(); ++at) {
          CAPTURE(folder, name, at);
          const auto messages = messages_of(expected.at("conversations").at(at));
          const json& result = wanted.at("results").at(at);
          CHECK(chat.render(messages).text == result.at("text").get<std::string>());
          const auto encoded = chat.encode(messages);
          CHECK(encoded.tokens == result.at("tokens").get<std::vector<std::int32_t>>());
          CHECK(std::vector<int>(encoded.learnt.begin(), encoded.learnt.end()) == result.at("mask").get<std::vector<int>>());
          ++compared;
        }
      }
    }
    CHECK(compared == 84);
  }
}

TEST_CASE("a tokenizer without the tokens of a template is refused") {
  for (const tests::Fixture& set : tests::fixtures_of_kind("conversations")) {
    const auto tokenizer = tokenizers::read_tokenizer(set.file.parent_path() / "prepending");
    CHECK_THROWS_WITH(tokenizers::ChatTemplate("chatml", tokenizer, {}),
                      ContainsSubstring("the chat template chatml needs the token <|im_start|>, which the tokenizer lacks") &&
                          ContainsSubstring("alpaca or plain"));
    const auto marks = tokenizers::text_marks(tokenizer, "/nowhere/tokenizer.json");
    CHECK(marks.begin == "<s>");
    CHECK(marks.end == "</s>");
  }
}
