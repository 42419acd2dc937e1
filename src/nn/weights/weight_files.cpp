#include "nn/weights/weight_files.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <nlohmann/json.hpp>

#include "trireme/core/bfloat16.hpp"
#include "trireme/core/error.hpp"
#include "trireme/core/float16.hpp"
#include "trireme/files/file_system.hpp"
#include "trireme/files/json_fault.hpp"

namespace trireme::nn {
namespace {

constexpr const char* whole_name = "model.safetensors";
constexpr const char* index_name = "model.safetensors.index.json";

[[noreturn]] void refuse_index(const Location& path, const std::string& what) {
  throw Error({.code = ErrorCode::corrupt_file,
               .message = "the index of a model's shards " + what,
               .path = path.string(),
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

std::map<std::string, std::string> read_shard_index(const Location& path) {
  const std::string text = open_file(path)->content();
  const auto index = nlohmann::json::parse(text, nullptr, false);
  if (!index.is_object()) refuse_index(path, "is no JSON object" + why_no_json(text));
  const auto map = index.find("weight_map");
  if (map == index.end() || !map->is_object() || map->empty()) refuse_index(path, "has no weight_map with tensors");
  std::map<std::string, std::string> shards;
  for (const auto& [tensor, shard] : map->items()) {
    if (!shard.is_string()) refuse_index(path, fmt::format("names no file for {}", tensor));
    const auto& name = shard.get_ref<const std::string&>();
    if (name.empty() || name.find('/') != name.npos || name == "." || name == "..") {
      refuse_index(path, fmt::format("names \"{}\" for {}, which is no file beside it", name, tensor));
    }
    shards[tensor] = name;
  }
  return shards;
}

bool has_weights(const Location& path) {
  if (!is_folder(path)) return is_there(path);
  return is_there(path / whole_name) || is_there(path / index_name);
}

WeightFiles::WeightFiles(const Location& path) : path_(path) {
  const bool of_folder = is_folder(path);
  const Location whole = of_folder ? path / whole_name : path;
  if (of_folder && !is_there(whole)) {  // transformers too looks for the whole file first
    if (is_there(path / index_name)) {
      open_shards(path / index_name);
      return;
    }
    throw Error({.code = ErrorCode::invalid_argument,
                 .message = fmt::format("the folder has neither {} nor {}", whole_name, index_name),
                 .path = path.string(),
                 .hint =
                     "name a folder as transformers writes it by save_pretrained(), or a safetensors file; of a checkpoint, "
                     "trireme-ckpt export FOLDER FILE writes one"});
  }
  files_.push_back(std::make_unique<SafetensorsFile>(whole));
  for (const SafetensorsEntry& entry : files_.front()->tensors()) all_.push_back({files_.front().get(), &entry});
}

void WeightFiles::open_shards(const Location& index) {
  std::map<std::string, const SafetensorsFile*> opened;
  for (const auto& [tensor, shard] : read_shard_index(index)) {
    auto& file = opened[shard];
    if (file == nullptr) {
      files_.push_back(std::make_unique<SafetensorsFile>(path_ / shard));
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
