#include <fmt/format.h>

#include <algorithm>
#include <cstdio>

#include "commands.hpp"
#include "trireme/core/error.hpp"
#include "trireme/data/shards/token_shard_writer.hpp"
#include "trireme/tokenizers/chat/chat_template.hpp"
#include "trireme/tokenizers/files/read_tokenizer.hpp"

namespace trireme::data_program {
namespace {

// "\n" is a new line, "\t" a tabulator, "\\" a backslash.
std::string unescaped(const std::string& text) {
  std::string result;
  for (std::size_t at = 0; at < text.size(); ++at) {
    if (text[at] != '\\') {
      result += text[at];
      continue;
    }
    const char next = ++at < text.size() ? text[at] : '\0';
    require(next == 'n' || next == 't' || next == '\\', "--separator {}: behind a backslash stands n, t or a backslash", text);
    result += next == 'n' ? '\n' : next == 't' ? '\t' : '\\';
  }
  return result;
}

std::int32_t end_token_of(const TokenizeCommand& command, const tokenizers::Tokenizer& tokenizer) {
  const std::string name =
      command.end_token->empty() ? tokenizers::text_marks(tokenizer, command.tokenizer).end : *command.end_token;
  require(!name.empty(), "--end-token: {} does not tell which token ends a text: name it, as in --end-token \"</s>\"",
          command.tokenizer);
  const auto token = tokenizer.find(name);
  require(token.has_value(), "--end-token {}: {} has no such token", name, command.tokenizer);
  return *token;
}

}  // namespace

int tokenize(TokenizeCommand command, const Group& world) {
  const tokenizers::Tokenizer bytes = tokenizers::Tokenizer::bytes();
  std::optional<tokenizers::Tokenizer> tokenizer;
  data::TokenizeOptions& options = command.options;
  const auto read = [&] {
    tokenizer = command.tokenizer == "byte" ? bytes : tokenizers::read_tokenizer(command.tokenizer);
    if (command.end_token) options.end_token = end_token_of(command, *tokenizer);
    options.separator = unescaped(command.separator);
  };
  world.agree(read, "read the tokenizer");
  options.sources = command.sources_are_files ? data::SourceNumbers::files : data::SourceNumbers::patterns;
  options.after_shard = [&](const data::TokenizeReport& report) {
    fmt::print("{}: {} documents, {} tokens so far\n", data::token_shard(command.output, report.shards - 1), report.documents,
               report.tokens);
    std::fflush(stdout);
  };
  const data::TokenizeReport report = data::tokenize_files(command.inputs, *tokenizer, command.output, options, &world);
  if (world.rank() != 0) return 0;
  fmt::print("{} shards of {} documents, {} tokens", report.shards, report.documents, report.tokens);
  if (report.shards_found > 0) fmt::print("; {} shards were there already", report.shards_found);
  if (report.empty > 0) fmt::print("; {} empty documents are left out", report.empty);
  if (report.broken > 0) fmt::print("; {} broken documents are skipped", report.broken);
  fmt::print("\n");
  return 0;
}

}  // namespace trireme::data_program
