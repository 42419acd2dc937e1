#include "data/sources/lines.hpp"

#include <nlohmann/json.hpp>
#include <utility>

#include "data/sources/byte_stream.hpp"
#include "trireme/core/error.hpp"
#include "trireme/files/json_fault.hpp"

namespace trireme::data {

std::int64_t line_number_at(const Location& file, std::uint64_t byte) {
  ByteStream stream(file, 0);
  std::int64_t lines = 1;
  for (std::string piece; byte > 0 && stream.read(piece); piece.clear()) {
    const std::string_view before = std::string_view(piece).substr(0, byte);
    lines += std::ranges::count(before, '\n');
    byte -= before.size();
  }
  return lines;
}

std::string text_in_line(std::string_view line, std::string_view key) {
  nlohmann::json object = nlohmann::json::parse(line, nullptr, false);
  require(object.is_object(), "this is no JSON object{}", why_no_json(line));
  const auto found = object.find(key);
  require(found != object.end(), "there is no \"{}\"", key);
  require(found->is_string(), "\"{}\" is no text", key);
  return std::move(found->get_ref<std::string&>());
}

}  // namespace trireme::data
