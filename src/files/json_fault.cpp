#include "trireme/files/json_fault.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

namespace trireme {
namespace {

// The reason in an error text, without the text last read, which may not be UTF-8.
std::string reason_in(std::string text) {
  const std::size_t dash = text.find(" - ");
  if (dash != text.npos) text.erase(0, dash + 3);
  const std::size_t read = text.find("; last read: '"), expected = text.rfind("'; expected ");
  if (read == text.npos) return text;
  return text.substr(0, read) + (expected == text.npos ? "" : text.substr(expected + 1));
}

// For a truncated UTF-8 character the parser gives the byte after it; this returns its first byte.
std::size_t first_byte(std::string_view text, std::size_t place) {
  const auto byte = [text](std::size_t at) { return static_cast<unsigned char>(text[at - 1]); };  // counted from 1
  if (place < 2 || place > text.size() || byte(place) >= 0x80) return place;
  for (--place; place > 1 && (byte(place) & 0xC0) == 0x80;) --place;
  return place;
}

}  // namespace

std::string json_fault(std::string_view text) {
  try {
    const auto value = nlohmann::json::parse(text);
    return "";
  } catch (const nlohmann::json::parse_error& error) {
    const std::string reason = reason_in(error.what());
    const bool is_cut = reason.find("ill-formed UTF-8") != reason.npos;
    return fmt::format("byte {}: {}", is_cut ? first_byte(text, error.byte) : error.byte, reason);
  } catch (const nlohmann::json::out_of_range&) {
    return "a number is too large for a double";
  }
}

std::string why_no_json(std::string_view text) {
  const std::string fault = json_fault(text);
  return fault.empty() ? "" : ": " + fault;
}

}  // namespace trireme
