#include "text_coding.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <charconv>
#include <memory>

#include "trireme/core/error.hpp"
#include "trireme/tokenizers/files/read_tokenizer.hpp"

using namespace trireme;

namespace {

std::vector<std::int32_t> read_numbers(std::string_view text) {
  std::vector<std::int32_t> tokens;
  while (true) {
    const std::size_t first = text.find_first_not_of(" \t\r\n,");
    if (first == text.npos) return tokens;
    text.remove_prefix(first);
    std::int32_t token = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), token);
    require(error == std::errc() && (end == text.data() + text.size() || std::string_view(" \t\r\n,").find(*end) != text.npos),
            "\"{}\" is not the number of a token: with --tokens number, a text consists of numbers with spaces between them",
            text.substr(0, text.find_first_of(" \t\r\n,")));
    tokens.push_back(token);
    text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  }
}

tokenizers::Tokenizer tokenizer_of(const std::string& named, const Location& folder) {
  if (named.empty() && tokenizers::has_tokenizer(folder)) return tokenizers::read_tokenizer(folder);
  return named.empty() || named == "byte" ? tokenizers::Tokenizer::bytes() : tokenizers::read_tokenizer(named);
}

}  // namespace

TextCoding coding_of(const LanguageOptions& options, const Location& folder) {
  if (options.tokens == "number") {
    return {.joins_words = false,
            .encode = [](std::string_view text, bool) { return read_numbers(text); },
            .find = [](std::string_view) { return std::optional<std::int32_t>(); },
            .decode_after = [](std::span<const std::int32_t>,
                               std::span<const std::int32_t> text) { return fmt::format("{}", fmt::join(text, " ")); },
            .decode_next = [](std::int32_t token) { return fmt::format("{} ", token); },
            .decode_rest = [] { return std::string(); }};
  }
  const tokenizers::Tokenizer tokenizer = tokenizer_of(options.tokenizer, folder);
  const auto stream =
      std::make_shared<tokenizers::TextStream>(tokenizer, tokenizers::DecodeOptions{.skip_special_tokens = true});
  return {.encode = [tokenizer](std::string_view text,
                                bool begins) { return tokenizer.encode(text, {.add_special_tokens = begins}); },
          .find = [tokenizer](std::string_view text) { return tokenizer.find(text); },
          .decode_after =
              [tokenizer](std::span<const std::int32_t> before, std::span<const std::int32_t> text) {
                tokenizers::TextStream whole(tokenizer, {.skip_special_tokens = true});
                for (const std::int32_t token : before) whole.add(token);
                std::string result;
                for (const std::int32_t token : text) result += whole.add(token);
                return result + whole.finish();
              },
          .decode_next = [stream](std::int32_t token) { return stream->add(token); },
          .decode_rest = [stream] { return stream->finish(); }};
}
