#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "files/safetensors_format.hpp"

namespace trireme {
namespace {

using safetensors::length_bytes;

[[noreturn]] void refuse(const Location& path, std::string message, std::string name = {}) {
  throw Error({.code = ErrorCode::invalid_argument,
               .message = std::move(message),
               .operation = "writing safetensors",
               .name = std::move(name),
               .path = path.string()});
}

std::size_t bytes_of(const TensorRef& tensor) { return static_cast<std::size_t>(tensor.shape.numel()) * size_of(tensor.dtype); }

// Sorts wide elements first: so every tensor is aligned to its element size without gaps, which the format forbids.
std::vector<TensorRef> file_order(std::span<const TensorRef> tensors) {
  std::vector<TensorRef> order(tensors.begin(), tensors.end());
  std::ranges::stable_sort(order, std::ranges::greater{}, [](const TensorRef& tensor) { return size_of(tensor.dtype); });
  return order;
}

std::string json_string(const std::string& text, const Location& path) {
  try {
    return nlohmann::json(text).dump();
  } catch (const nlohmann::json::exception& exception) {
    refuse(path, fmt::format("a name or the metadata is not UTF-8: {}", exception.what()));
  }
}

void check_names(std::span<const TensorRef> tensors, const Location& path) {
  std::vector<std::string_view> names;
  for (const TensorRef& tensor : tensors) {
    if (tensor.name == safetensors::metadata_key) refuse(path, "the format keeps this name for itself", tensor.name);
    names.push_back(tensor.name);
  }
  std::ranges::sort(names);
  const auto twice = std::ranges::adjacent_find(names);
  if (twice != names.end()) refuse(path, "two tensors have this name", std::string(*twice));
}

}  // namespace

std::string safetensors_header(std::span<const TensorRef> tensors, const SafetensorsMetadata& metadata, const Location& path) {
  check_names(tensors, path);
  std::vector<std::string> members;
  if (!metadata.empty()) {
    std::vector<std::string> pairs;
    for (const auto& [key, value] : metadata) {
      pairs.push_back(fmt::format("{}:{}", json_string(key, path), json_string(value, path)));
    }
    members.push_back(fmt::format("\"{}\":{{{}}}", safetensors::metadata_key, fmt::join(pairs, ",")));
  }
  std::uint64_t begin = 0;
  for (const TensorRef& tensor : tensors) {
    const std::uint64_t end = begin + bytes_of(tensor);
    members.push_back(fmt::format(R"({}:{{"dtype":"{}","shape":[{}],"data_offsets":[{},{}]}})", json_string(tensor.name, path),
                                  safetensors::format_name(tensor.dtype), fmt::join(tensor.shape.dims(), ","), begin, end));
    begin = end;
  }
  std::string text = fmt::format("{{{}}}", fmt::join(members, ","));
  text.append((length_bytes - text.size() % length_bytes) % length_bytes, ' ');
  if (text.size() > safetensors::max_header_bytes) {
    refuse(path, fmt::format("the header would take {} bytes, more than {}", text.size(), safetensors::max_header_bytes));
  }
  const std::uint64_t length = text.size();
  return std::string(reinterpret_cast<const char*>(&length), length_bytes) + text;
}

void write_safetensors(const Location& path, std::span<const TensorRef> tensors, const SafetensorsMetadata& metadata) {
  for (const TensorRef& tensor : tensors) {
    if (tensor.data == nullptr && bytes_of(tensor) > 0) refuse(path, "the tensor has no data", tensor.name);
  }
  const auto order = file_order(tensors);
  const std::string header = safetensors_header(order, metadata, path);

  FileReplacement file(path);
  file.write(std::as_bytes(std::span(header)));
  for (const TensorRef& tensor : order) file.write({static_cast<const std::byte*>(tensor.data), bytes_of(tensor)});
  file.commit();
}

}  // namespace trireme
