#include "text_codec.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <charconv>

#include "trireme/core/error.hpp"
#include "trireme/data/tokenizer.hpp"

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
            "\"{}\" is no number of a token: with --tokens number a text is numbers with spaces between them",
            text.substr(0, text.find_first_of(" \t\r\n,")));
    tokens.push_back(token);
    text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  }
}

std::string decode_bytes(std::span<const std::int32_t> tokens) { return data::ByteTokenizer().decode(tokens); }

}  // namespace

TextCodec codec_of(const std::string& tokens, const std::filesystem::path&) {
  if (tokens == "byte") {
    return {.encode = [](std::string_view text) { return data::ByteTokenizer().encode(text); },
            .decode = decode_bytes,
            .decode_next =
                [](std::int32_t token) {
                  return decode_bytes({&token, 1});
                }};
  }
  require(tokens == "number", "--tokens {}: use byte or number", tokens);
  return {.encode = read_numbers,
          .decode = [](std::span<const std::int32_t> text) { return fmt::format("{}", fmt::join(text, " ")); },
          .decode_next = [](std::int32_t token) { return fmt::format("{} ", token); }};
}
