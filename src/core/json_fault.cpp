#include "trireme/core/json_fault.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

namespace trireme {
namespace {

// Without what was read last, which may be no UTF-8.
std::string reason_in(std::string text) {
  const std::size_t dash = text.find(" - ");
  if (dash != text.npos) text.erase(0, dash + 3);
  const std::size_t read = text.find("; last read: '"), expected = text.rfind("'; expected ");
  if (read == text.npos) return text;
  return text.substr(0, read) + (expected == text.npos ? "" : text.substr(expected + 1));
}

}  // namespace

std::string json_fault(std::string_view text) {
  try {
    const auto value = nlohmann::json::parse(text);
    return "";
  } catch (const nlohmann::json::parse_error& error) {
    return fmt::format("byte {}: {}", error.byte, reason_in(error.what()));
  } catch (const nlohmann::json::out_of_range&) {
    return "a number is too large for a double";
  }
}

std::string why_no_json(std::string_view text) {
  const std::string fault = json_fault(text);
  return fault.empty() ? "" : ": " + fault;
}

}  // namespace trireme
