#include "trireme/checkpoint/manifest.hpp"

#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <span>
#include <utility>

#include "checkpoint/json.hpp"
#include "checkpoint/manifest_format.hpp"
#include "trireme/files/crc32c.hpp"

namespace trireme::checkpoint {
namespace {

Json json_of(const TensorPart& part) {
  return {{"file", part.file}, {"offset", part.offset}, {"runs", json_of(part.runs)}, {"crc32c", part.checksums}};
}

Json json_of(const SavedTensor& tensor) {
  Json parts = Json::array();
  for (const TensorPart& part : tensor.parts) parts.push_back(json_of(part));
  return {{"name", tensor.name},
          {"dtype", name_of(tensor.dtype)},
          {"shape", tensor.shape.dims()},
          {"optional", tensor.optional},
          {"digest", fmt::format("{:016x}", tensor.digest)},
          {"parts", std::move(parts)}};
}

Json json_of(const SavedFile& file) {
  return {
      {"name", file.name}, {"bytes", file.bytes}, {"header_bytes", file.header_bytes}, {"header_crc32c", file.header_checksum}};
}

std::uint32_t checksum_of(const Json& content) {
  const std::string text = content.dump();
  return crc32c(std::as_bytes(std::span(text)));
}

}  // namespace

bool is_same(const SavedValue& a, const SavedValue& b) {
  const auto is_nan = [](const SavedValue& value) {
    const auto* number = std::get_if<double>(&value);
    return number != nullptr && std::isnan(*number);
  };
  return a == b || (is_nan(a) && is_nan(b));
}

std::uint64_t Manifest::digest() const {
  std::uint64_t sum = 0;
  for (const SavedTensor& tensor : tensors) sum += tensor.digest;
  return sum;
}

std::string to_text(const Manifest& manifest) {
  Json files = Json::array();
  for (const SavedFile& file : manifest.files) files.push_back(json_of(file));
  Json tensors = Json::array();
  for (const SavedTensor& tensor : manifest.tensors) tensors.push_back(json_of(tensor));
  Json content{{"format", format_name},
               {"version", version},
               {"min_reader", version},
               {"critical", Json::array()},
               {"step", manifest.step},
               {"digest", fmt::format("{:016x}", manifest.digest())},
               {"chunk_bytes", manifest.chunk_bytes},
               {"configuration", manifest.configuration},
               {"values", json_of(manifest.values)},
               {"files", std::move(files)},
               {"tensors", std::move(tensors)}};
  if (manifest.imported) {
    content["critical"].push_back(imported_field);
    content[imported_field] = {{"source", manifest.imported->source}, {"prefix", manifest.imported->prefix}};
  }
  return Json{{"manifest", content}, {"crc32c", checksum_of(content)}}.dump() + "\n";
}

}  // namespace trireme::checkpoint
