#include "checkpoint/json_cursor.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <charconv>
#include <cmath>
#include <optional>

#include "checkpoint/json.hpp"
#include "trireme/core/error.hpp"

namespace trireme::checkpoint {
namespace {

constexpr int most_levels = 64;
constexpr std::size_t most_bytes_of_name = 1 << 16;

// Parses a number in its canonical form, without leading zeros.
template <typename T>
std::optional<T> number_of(std::string_view token) {
  T number{};
  const auto [end, failure] = std::from_chars(token.data(), token.data() + token.size(), number);
  const std::string_view digits = token.substr(token.starts_with('-') ? 1 : 0);
  const bool one_form = !digits.starts_with('0') || token == "0";
  if (failure != std::errc() || end != token.data() + token.size() || !one_form) return std::nullopt;
  return number;
}

// The size of the next piece of a quoted text: about 4 KiB, to avoid copies of a long text; ends at a whole escape or
// character.
std::size_t piece_size(std::string_view text) {
  const auto inside = [](char c) { return (static_cast<unsigned char>(c) & 0xC0U) == 0x80U; };
  std::size_t size = 0;
  while (size < text.size() && (size < 4096 || inside(text[size]))) {
    size += text[size] != '\\' ? 1 : text.substr(size).starts_with("\\u") ? 6 : 2;
  }
  return std::min(size, text.size());
}

}  // namespace

void JsonCursor::refuse(const std::string& what) const {
  refuse_(what);
  throw Error({.message = what});
}

void JsonCursor::take(std::string_view token) {
  if (!rest_.starts_with(token)) refuse(fmt::format("it is cut off, or lacks a \"{}\"", token));
  rest_.remove_prefix(token.size());
}

void JsonCursor::end() const {
  if (!rest_.empty()) refuse(fmt::format("{} bytes follow its end", rest_.size()));
}

void JsonCursor::object(const std::function<void(const std::string& name)>& visit) {
  if (++depth_ > most_levels) refuse("it is nested too deep");
  take("{");
  std::string last;
  for (bool first = true; !next_is('}'); first = false) {
    if (!first) take(",");
    const std::string name = text();
    if (name.size() > most_bytes_of_name) refuse(fmt::format("a name has {} bytes", name.size()));
    if (!first && name <= last) refuse(fmt::format("\"{}\" is out of order or appears twice", name));
    take(":");
    visit(name);
    last = name;
  }
  take("}");
  --depth_;
}

void JsonCursor::array(const std::function<void()>& visit) {
  if (++depth_ > most_levels) refuse("it is nested too deep");
  take("[");
  for (bool first = true; !next_is(']'); first = false) {
    if (!first) take(",");
    visit();
  }
  take("]");
  --depth_;
}

std::size_t JsonCursor::count_elements() const {
  JsonCursor ahead = *this;
  std::size_t count = 0;
  ahead.array([&] {
    ahead.skip();
    ++count;
  });
  return count;
}

// The token with its quotes.
std::string_view JsonCursor::text_token() {
  if (!next_is('"')) refuse("a text is missing");
  std::size_t end = 1;
  while (end < rest_.size() && rest_[end] != '"') end += rest_[end] == '\\' ? 2 : 1;
  if (end >= rest_.size()) refuse("it is cut off in a text");
  const std::string_view token = rest_.substr(0, end + 1);
  rest_.remove_prefix(token.size());
  return token;
}

std::string JsonCursor::text() {
  const std::string_view token = text_token();
  const std::string_view content = token.substr(1, token.size() - 2);
  if (std::ranges::all_of(content, [](char c) { return c >= ' ' && c <= '~' && c != '\\'; })) return std::string(content);
  std::string result;
  result.reserve(content.size());
  for (std::size_t begin = 0; begin < content.size();) {
    const std::string piece = fmt::format("\"{}\"", content.substr(begin, piece_size(content.substr(begin))));
    const Json value = Json::parse(piece, nullptr, false);
    if (!value.is_string() || value.dump() != piece) refuse("a text is not as JSON writes it");
    result += value.get_ref<const std::string&>();
    begin += piece.size() - 2;
  }
  return result;
}

bool JsonCursor::boolean() {
  const bool value = next_is('t');
  take(value ? "true" : "false");
  return value;
}

std::string_view JsonCursor::number_token() {
  const std::string_view token = rest_.substr(0, std::min(rest_.find_first_not_of("+-.0123456789Ee"), rest_.size()));
  rest_.remove_prefix(token.size());
  return token;
}

std::int64_t JsonCursor::integer() {
  const auto number = number_of<std::int64_t>(number_token());
  if (!number) refuse("a whole number is missing, or too large");
  return *number;
}

std::uint64_t JsonCursor::unsigned_integer() {
  const auto number = number_of<std::uint64_t>(number_token());
  if (!number) refuse("a whole number from 0 on is missing, or too large");
  return *number;
}

SavedValue JsonCursor::number_or_text() {
  if (next_is('"')) return text();
  if (next_is('{')) {
    take(fmt::format(R"({{"{}":)", name_of_bits));
    const auto bits = number_of_hex(text());
    if (!bits || std::isfinite(std::bit_cast<double>(*bits))) refuse("a value's bits are not an inf or nan");
    take("}");
    return std::bit_cast<double>(*bits);
  }
  const std::string_view token = number_token();
  if (const auto number = number_of<std::int64_t>(token)) return *number;
  const Json value = Json::parse(token, nullptr, false);
  if (!value.is_number_float() || value.dump() != token) refuse("a value is neither a number nor a text");
  return value.get<double>();
}

void JsonCursor::skip() {
  if (next_is('{')) {
    object([this](const std::string&) { skip(); });
  } else if (next_is('[')) {
    array([this] { skip(); });
  } else if (next_is('"')) {
    text_token();
  } else if (next_is('t') || next_is('f')) {
    boolean();
  } else if (next_is('n')) {
    take("null");
  } else if (number_token().empty()) {
    refuse("it is cut off or not JSON");
  }
}

}  // namespace trireme::checkpoint
