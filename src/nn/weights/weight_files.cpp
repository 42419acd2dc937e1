#include "nn/weights/weight_files.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>

#include "trireme/core/bfloat16.hpp"
#include "trireme/core/error.hpp"
#include "trireme/core/float16.hpp"
#include "trireme/files/file.hpp"
#include "trireme/files/json_fault.hpp"

namespace trireme::nn {
namespace {

constexpr const char* whole_name = "model.safetensors";
constexpr const char* index_name = "model.safetensors.index.json";

[[noreturn]] void refuse_index(const std::string& path, const std::string& what) {
  throw Error({.code = ErrorCode::corrupt_file,
               .message = "the index of a model's shards " + what,
               .path = path,
               .hint = "write the folder anew, or name another one"});
}

template <typename T>
void widen(const std::vector<std::byte>& bytes, std::vector<float>& values) {
  for (std::size_t i = 0; i < values.size(); ++i) {
    T value;
    std::memcpy(&value, bytes.data() + i * sizeof(T), sizeof(T));
    values[i] = static_cast<float>(value);
  }
}

}  // namespace

std::map<std::string, std::string> read_shard_index(const std::string& path) {
  const std::string text = File::open(path).content();
  const auto index = nlohmann::json::parse(text, nullptr, false);
  if (!index.is_object()) refuse_index(path, "is no JSON object" + why_no_json(text));
  const auto map = index.find("weight_map");
  if (map == index.end() || !map->is_object() || map->empty()) refuse_index(path, "has no weight_map with tensors");
  std::map<std::string, std::string> shards;
  for (const auto& [tensor, shard] : map->items()) {
    if (!shard.is_string()) refuse_index(path, fmt::format("names no file for {}", tensor));
    const auto& name = shard.get_ref<const std::string&>();
    if (name.empty() || std::filesystem::path(name).filename() != name || name == "." || name == "..") {
      refuse_index(path, fmt::format("names \"{}\" for {}, which is no file beside it", name, tensor));
    }
    shards[tensor] = name;
  }
  return shards;
}

bool has_weights(const std::string& path) {
  const std::filesystem::path given(path);
  std::error_code unknown;
  if (!std::filesystem::is_directory(given, unknown)) return std::filesystem::exists(given, unknown);
  return std::filesystem::exists(given / whole_name, unknown) || std::filesystem::exists(given / index_name, unknown);
}

WeightFiles::WeightFiles(const std::string& path) : path_(path) {
  const std::filesystem::path given(path);
  std::error_code unknown;
  const bool is_folder = std::filesystem::is_directory(given, unknown);
  const std::filesystem::path whole = is_folder ? given / whole_name : given;
  if (is_folder && !std::filesystem::exists(whole, unknown)) {  // transformers too looks for the whole file first
    if (std::filesystem::exists(given / index_name, unknown)) {
      open_shards((given / index_name).string());
      return;
    }
    throw Error({.code = ErrorCode::invalid_argument,
                 .message = fmt::format("the folder has neither {} nor {}", whole_name, index_name),
                 .path = path,
                 .hint =
                     "name a folder as transformers writes it by save_pretrained(), or a safetensors file; of a checkpoint, "
                     "trireme-ckpt export FOLDER FILE writes one"});
  }
  files_.push_back(std::make_unique<SafetensorsFile>(whole));
  for (const SafetensorsEntry& entry : files_.front()->tensors()) all_.push_back({files_.front().get(), &entry});
}

void WeightFiles::open_shards(const std::string& index) {
  std::map<std::string, const SafetensorsFile*> opened;
  for (const auto& [tensor, shard] : read_shard_index(index)) {
    auto& file = opened[shard];
    if (file == nullptr) {
      files_.push_back(std::make_unique<SafetensorsFile>(std::filesystem::path(path_) / shard));
      file = files_.back().get();
    }
    const SafetensorsEntry* entry = file->find(tensor);
    if (entry == nullptr) refuse_index(index, fmt::format("says that {} holds {}, which it does not", shard, tensor));
    all_.push_back({file, entry});
  }
}

StoredTensor WeightFiles::find(std::string_view name) const {
  const auto found = std::ranges::lower_bound(
      all_, name, {}, [](const StoredTensor& tensor) -> std::string_view { return tensor.entry->name; });
  return found != all_.end() && found->entry->name == name ? *found : StoredTensor{};
}

std::vector<float> read_rows(const StoredTensor& tensor, const Range& rows) {
  const SafetensorsEntry& entry = *tensor.entry;
  const std::int64_t all_rows = entry.shape.size() == 0 ? 1 : entry.shape[0];
  const auto of_row = static_cast<std::size_t>(all_rows == 0 ? 0 : entry.shape.numel() / all_rows);
  const auto count = static_cast<std::size_t>(rows.count()) * of_row;
  const std::size_t bytes = size_of(entry.dtype);
  std::vector<float> values(count);
  if (entry.dtype == DType::float32) {
    tensor.file->read_part(entry.name, static_cast<std::size_t>(rows.begin) * of_row * bytes,
                           std::as_writable_bytes(std::span(values)));
    return values;
  }
  std::vector<std::byte> stored(count * bytes);
  tensor.file->read_part(entry.name, static_cast<std::size_t>(rows.begin) * of_row * bytes, stored);
  entry.dtype == DType::bfloat16 ? widen<bfloat16>(stored, values) : widen<float16>(stored, values);
  return values;
}

}  // namespace trireme::nn
