#include "tokenizers/files/tiktoken.hpp"

#include <fmt/format.h>

#include <charconv>
#include <optional>
#include <utility>

#include "tokenizers/codecs/bpe.hpp"
#include "tokenizers/codecs/text_codec.hpp"
#include "trireme/core/error.hpp"

namespace trireme::tokenizers {
namespace {

std::optional<std::string> bytes_of_base64(std::string_view text) {
  static constexpr std::string_view digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  if (text.empty() || text.size() % 4 != 0) return {};
  while (text.ends_with('=')) text.remove_suffix(1);
  std::string bytes;
  std::uint32_t bits = 0;
  int count = 0;
  for (const char character : text) {
    const std::size_t digit = digits.find(character);
    if (digit == std::string_view::npos) return {};
    bits = bits << 6 | static_cast<std::uint32_t>(digit);
    count += 6;
    if (count < 8) continue;
    count -= 8;
    bytes += static_cast<char>(static_cast<unsigned char>(bits >> count));
  }
  return bytes;
}

void add_line(std::string_view line, std::size_t number, const std::string& path, TokenSpellings& to) {
  const auto refuse = [&](const std::string& what) {
    throw Error({.code = ErrorCode::corrupt_file,
                 .message = fmt::format("line {} of a tiktoken file {}", number, what),
                 .path = path,
                 .wanted = "a token in base64, a space and its number"});
  };
  const std::size_t space = line.find(' ');
  if (space == std::string_view::npos) refuse("has no space");
  const auto token = bytes_of_base64(line.substr(0, space));
  if (!token || token->empty()) refuse("does not begin with base64");
  constexpr std::size_t longest = 4096;
  if (token->size() > longest) refuse(fmt::format("has a token of {} bytes, more than {}", token->size(), longest));
  std::int64_t rank = -1;
  const char* const end = line.data() + line.size();
  if (std::from_chars(line.data() + space + 1, end, rank).ptr != end) refuse("does not end with a number");
  try {
    to.add(*token, rank);
  } catch (const Error& error) {
    refuse(fmt::format("is wrong: {}", error.what()));
  }
}

// Two tokens merge if their concatenation is a token; its number is the rank.
Merges merges_of(const TokenSpellings& tokens) {
  struct Pair {
    std::int32_t left, right, whole;
  };
  std::vector<Pair> pairs;
  for (std::int32_t whole = 0; whole < tokens.size(); ++whole) {
    if (!tokens.has(whole)) continue;
    const std::string_view text = tokens.text(whole);
    for (std::size_t cut = 1; cut < text.size(); ++cut) {
      const auto left = tokens.find(text.substr(0, cut));
      if (!left) continue;
      if (const auto right = tokens.find(text.substr(cut))) pairs.push_back({.left = *left, .right = *right, .whole = whole});
    }
  }
  Merges merges(pairs.size());
  for (const Pair& pair : pairs) merges.add(pair.left, pair.right, {.rank = pair.whole, .token = pair.whole});
  return merges;
}

}  // namespace

bool is_tiktoken_line(std::string_view line) {
  const std::size_t space = line.find(' ');
  if (space == std::string_view::npos || !bytes_of_base64(line.substr(0, space))) return false;
  const std::string_view number = line.substr(space + 1);
  return !number.empty() && number.find_first_not_of("0123456789") == std::string_view::npos;
}

std::shared_ptr<const detail::Codec> tiktoken_codec(const std::vector<std::string>& lines, const std::string& path,
                                                    const TiktokenOptions& options) {
  auto tokens = std::make_shared<TokenSpellings>(lines.size());
  for (std::size_t at = 0; at < lines.size(); ++at) {
    if (!lines[at].empty()) add_line(lines[at], at + 1, path, *tokens);
  }
  for (int byte = 0; byte < 256; ++byte) {
    if (tokens->find(std::string(1, static_cast<char>(byte)))) continue;
    throw Error({.code = ErrorCode::corrupt_file,
                 .message = fmt::format("a tiktoken file has no token for the byte 0x{:02X}", byte),
                 .path = path});
  }
  TextCodecParts parts{
      .spellings = tokens,
      .texts = tokens,
      .model = std::make_shared<Bpe>(tokens, merges_of(*tokens), BpeOptions{.byte_level = true, .ignore_merges = true})};
  for (const auto& [content, number] : options.special_tokens) {
    require(!content.empty() && number >= 0 && number < 1 << 24 && !tokens->has(number),
            "the special token \"{}\" of {} has the number {}, which must be free and below 2^24", content, path, number);
    const AddedToken token{.content = content, .number = number, .is_special = true};
    for (const AddedToken& other : parts.added) {
      require(other.number != number, "the special tokens \"{}\" and \"{}\" of {} have the same number, {}", other.content,
              content, path, number);
    }
    parts.added.push_back(token);
    parts.added_in_text.add(token);
  }
  parts.splitter.add(SplitByRegex{.regex = Regex(options.pattern, RegexRules::rust)});
  return std::make_shared<TextCodec>(std::move(parts));
}

}  // namespace trireme::tokenizers
