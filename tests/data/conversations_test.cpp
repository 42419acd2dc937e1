#include "trireme/data/documents/conversations.hpp"

#include <fstream>
#include <string>
#include <vector>

#include "catch.hpp"
#include "temporary_folder.hpp"
#include "trireme/core/error.hpp"
#include "trireme/data/text/text_batch.hpp"

using namespace trireme;
using data::no_target;
using tokenizers::Tokenizer;

namespace {

using Numbers = std::vector<std::int32_t>;

const tokenizers::ChatTemplate plain("plain", Tokenizer::bytes(), tokenizers::text_marks(Tokenizer::bytes(), ""));

data::Conversation talk(const std::string& prompt, const std::string& completion) {
  return {.messages = {{"user", prompt}, {"assistant", completion}}};
}

// The error message of reading a file with these lines.
std::string refusal_of(const std::string& lines) {
  const tests::TemporaryFolder folder;
  std::ofstream(folder.path() / "talks.jsonl") << lines;
  try {
    data::read_conversations(folder.path() / "talks.jsonl");
  } catch (const Error& error) {
    CHECK(error.fields().path == (folder.path() / "talks.jsonl").string());
    return error.fields().message;
  }
  return "";
}

}  // namespace

TEST_CASE("conversations are read from lines of JSON") {
  const tests::TemporaryFolder folder;
  std::filesystem::create_directory(folder.path() / "b");
  std::ofstream(folder.path() / "b" / "2.jsonl") << R"({"prompt": "a", "completion": "b", "source": 3})";
  std::ofstream(folder.path() / "notes.txt") << "no JSON";
  std::ofstream(folder.path() / "1.jsonl") << "\xef\xbb\xbf\n"
                                           << R"({"messages": [{"role": "system", "content": ""},)"
                                           << R"({"role": "assistant", "content": "é\n"}]})"
                                           << "\r\n  \n";
  const auto all = data::read_conversations(folder.path());
  REQUIRE(all.size() == 2);
  CHECK(all[0].line == 2);
  CHECK(all[0].messages.size() == 2);
  CHECK(all[0].messages[1].content == "é\n");
  CHECK(all[1].messages[0].role == "user");
  CHECK(all[1].messages[1].content == "b");
  CHECK(all[1].file == (folder.path() / "b" / "2.jsonl").string());
}

TEST_CASE("hidden files of conversations are passed over, linked folders are read") {
  namespace fs = std::filesystem;
  const char* line = R"({"prompt": "a", "completion": "b"})";
  const tests::TemporaryFolder folder, elsewhere;
  fs::create_directory(folder.path() / ".ipynb_checkpoints");
  for (const fs::path& file : {folder.path() / ".ipynb_checkpoints" / "1-checkpoint.jsonl", folder.path() / ".1.jsonl",
                               folder.path() / "1.jsonl", elsewhere.path() / "2.jsonl"}) {
    std::ofstream(file) << line;
  }
  fs::create_symlink(elsewhere.path(), folder.path() / "linked");
  const auto all = data::read_conversations(folder.path());
  REQUIRE(all.size() == 2);
  CHECK(all[1].file == (folder.path() / "linked" / "2.jsonl").string());
  fs::create_symlink(".", folder.path() / "loop");
  CHECK_THROWS_WITH(data::read_conversations(folder.path()), ContainsSubstring("/loop") && ContainsSubstring("leads back"));
}

TEST_CASE("a line that is no conversation is refused with its file and number") {
  const std::string good = "{\"prompt\": \"a\", \"completion\": \"b\"}\n";
  CHECK_THAT(refusal_of(good + "{\"prompt\": "), ContainsSubstring("line 2: this is no JSON object"));
  CHECK_THAT(refusal_of("[" + good + "]"), ContainsSubstring("line 1: this is no JSON object"));
  CHECK(refusal_of(good + "{\"prompt\": \"caf\xe9\", \"completion\": \"b\"}") ==
        "line 2: this is no JSON object: byte 16: invalid string: ill-formed UTF-8 byte");
  CHECK_THAT(refusal_of("{\"prompt\": \"a\", \"completion\": NaN}"),
             ContainsSubstring("no JSON object: byte 31: invalid literal") && !ContainsSubstring("last read"));
  CHECK_THAT(refusal_of("{\"prompt\": \"a\", \"completion\": \"b\",}"), ContainsSubstring("byte 35: unexpected '}'; expected"));
  CHECK_THAT(refusal_of("{\"prompt\": \"a\tb\", \"completion\": \"b\"}"),
             ContainsSubstring("byte 14: invalid string: control"));
  CHECK(refusal_of("3") == "line 1: this is no JSON object");
  CHECK_THAT(refusal_of(good + "\n{\"prompt\": \"a\"}"), ContainsSubstring("line 3: there is no \"completion\""));
  CHECK_THAT(refusal_of("{\"completion\": \"a\"}"), ContainsSubstring("there is no \"prompt\""));
  CHECK_THAT(refusal_of("{\"text\": \"a\"}"), ContainsSubstring("neither \"messages\" nor \"prompt\""));
  CHECK_THAT(refusal_of("{\"prompt\": [], \"completion\": \"b\"}"), ContainsSubstring("\"prompt\" is no text"));
  CHECK_THAT(refusal_of("{\"prompt\": \"a\", \"completion\": \"\"}"), ContainsSubstring("an answer is empty"));
  CHECK_THAT(refusal_of("{\"prompt\": \"a\", \"messages\": []}"), ContainsSubstring("\"messages\" and a \"prompt\""));
  CHECK_THAT(refusal_of("{\"messages\": 3}"), ContainsSubstring("\"messages\" is no list"));
  CHECK_THAT(refusal_of("{\"messages\": [3]}"), ContainsSubstring("a message is no object"));
  CHECK_THAT(refusal_of("{\"messages\": []}"), ContainsSubstring("no message is the assistant's"));
  CHECK_THAT(refusal_of("{\"messages\": [{\"role\": \"tool\", \"content\": \"a\"}]}"), ContainsSubstring("the role \"tool\""));
  CHECK_THAT(refusal_of("{\"messages\": [{\"role\": \"user\"}]}"), ContainsSubstring("there is no \"content\""));
  CHECK_THAT(refusal_of("{\"messages\": [{\"role\": \"user\", \"content\": null}]}"),
             ContainsSubstring("\"content\" is no text"));
  CHECK_THAT(refusal_of("\n \n"), ContainsSubstring("there are no conversations"));
}

TEST_CASE("what says that a message is not learnt is honoured, and what no template writes refused") {
  const auto lines_of = [](const std::string& more, const std::string& of_line = "") {
    return R"({"messages": [{"role": "user", "content": "a", "name": "Ann"}, {"role": "assistant", "content": "b")" + more +
           R"(}, {"role": "user", "content": "c"}, {"role": "assistant", "content": "d", "weight": 1, "tool_calls": []}])" +
           of_line + "}";
  };
  const tests::TemporaryFolder folder;
  const auto targets_of = [&](const std::string& more) {
    std::ofstream(folder.path() / "talks.jsonl") << lines_of(more, R"(, "source": "x", "tools": null)");
    return data::encode_conversation(plain, data::read_conversations(folder.path())[0]).targets;
  };
  CHECK(targets_of("") == Numbers{'b', 0, no_target, 'd', 0, no_target});
  const Numbers last_alone{no_target, no_target, no_target, 'd', 0, no_target};
  CHECK(targets_of(R"(, "weight": 0)") == last_alone);
  CHECK(targets_of(R"(, "weight": 0.0, "train": true)") == last_alone);
  CHECK(targets_of(R"(, "train": false)") == last_alone);
  CHECK(targets_of(R"(, "weight": null, "train": true)") == targets_of(""));
  CHECK_THAT(refusal_of(lines_of(R"(, "weight": 0.5)")), ContainsSubstring("line 1: message 1 has a \"weight\" of 0.5"));
  CHECK_THAT(refusal_of(lines_of(R"(, "train": 0)")), ContainsSubstring("message 1 has a \"train\" of 0"));
  CHECK_THAT(refusal_of(lines_of(R"(, "tool_calls": [{"id": 1}])")), ContainsSubstring("message 1 has \"tool_calls\""));
  CHECK_THAT(refusal_of(lines_of(R"(, "reasoning_content": "so")")), ContainsSubstring("has \"reasoning_content\""));
  CHECK_THAT(refusal_of(lines_of("", R"(, "tools": [{"type": "function"}])")),
             ContainsSubstring("\"tools\" beside the messages is not supported"));
  CHECK_THAT(refusal_of(lines_of("", R"(, "weight": 0)")),
             ContainsSubstring("\"weight\" beside the messages is not supported"));
  CHECK_THAT(refusal_of(R"({"messages": [{"role": "user", "content": "a", "train": true}]})"),
             ContainsSubstring("message 0 of the user has a \"train\" of true"));
  CHECK_THAT(refusal_of(R"({"messages": [{"role": "assistant", "content": "a", "weight": 0}]})"),
             ContainsSubstring("all answers have a weight of 0"));
}

TEST_CASE("targets are the tokens of answers") {
  const auto [tokens, targets] = data::encode_conversation(plain, talk("ab", "c"));
  CHECK(tokens == Numbers{'a', 'b', 'c', 0});
  CHECK(targets == Numbers{no_target, 'c', 0, no_target});
}

TEST_CASE("what has no template is told with its line") {
  const data::Conversation turns{.messages = {{"assistant", "a"}}, .file = "talks.jsonl", .line = 7};
  const tokenizers::ChatTemplate mistral("mistral", Tokenizer::bytes(), {});
  CHECK_THROWS_WITH(data::encode_conversation(mistral, turns),
                    ContainsSubstring("line 7: message 0 has the role assistant") && ContainsSubstring("talks.jsonl"));
}

TEST_CASE("long conversations are cut, and left out where no answer is left") {
  const std::vector<data::Conversation> all{talk("ab", "c"), talk("a", "bcdefg"), talk("abcdef", "g"), talk("abcd", "e")};
  const auto encoded = data::encode_conversations(plain, all, 4);
  REQUIRE(encoded.documents.size() == 3);
  CHECK(encoded.documents[0].tokens.size() == 3);  // the last token predicts nothing
  CHECK(encoded.documents[1].tokens.size() == 4);
  CHECK(encoded.documents[1].targets.back() == 'e');
  CHECK(encoded.documents[2].targets.back() == 'e');
  CHECK(encoded.num_cut == 2);
  CHECK(encoded.num_left_out == 1);
  CHECK(encoded.num_learnt == 2 + 4 + 1);
  CHECK_THROWS_WITH(data::encode_conversations(plain, std::span(all).subspan(2, 1), 4),
                    ContainsSubstring("none of 1 conversations has an answer within its first 4 tokens"));
}
