#include "models/config_file.hpp"

#include <fmt/format.h>

#include <cmath>
#include <fstream>
#include <system_error>
#include <utility>

namespace trireme::models {

ConfigFile::ConfigFile(const std::filesystem::path& path) : path_(path.string()) {
  std::ifstream file(path);
  if (!file) {
    throw Error({.code = ErrorCode::io,
                 .message = "a model's config can't be read",
                 .path = path_,
                 .hint = "name a folder as transformers writes it by save_pretrained()"});
  }
  root_ = std::make_shared<const nlohmann::json>(nlohmann::json::parse(file, nullptr, false));
  object_ = root_.get();
  if (object_->is_object()) return;
  throw Error({.code = ErrorCode::corrupt_file, .message = "a model's config is no JSON object", .path = path_});
}

ConfigFile::ConfigFile(const ConfigFile& outer, std::string_view key)
    : path_(outer.path_), prefix_(fmt::format("{}{}.", outer.prefix_, key)), root_(outer.root_) {
  object_ = &outer.at(key, "an object");
  if (!object_->is_object()) outer.refuse(key, "an object");
}

const nlohmann::json* ConfigFile::find(std::string_view key) const {
  known_.emplace(key);
  const auto found = object_->find(key);
  return found == object_->end() || found->is_null() ? nullptr : &*found;
}

const nlohmann::json& ConfigFile::at(std::string_view key, std::string_view wanted) const {
  const nlohmann::json* value = find(key);
  if (value == nullptr) refuse(key, std::string(wanted));
  return *value;
}

void ConfigFile::refuse(std::string_view key, const std::string& wanted) const {
  const auto found = object_->find(key);
  std::string had = "nothing";
  if (found != object_->end()) {
    // As ASCII, so that a cut falls between characters. What is nested is not written: it may be so deep that no stack holds
    // it.
    had = found->is_object() ? "an object" : found->is_array() ? "a list" : found->dump(-1, ' ', true);
  }
  if (had.size() > 200) had = had.substr(0, 200) + " ...";
  throw Error({.code = ErrorCode::invalid_argument,
               .message = "a model's config has a value that is not supported",
               .name = prefix_ + std::string(key),
               .path = path_,
               .wanted = wanted,
               .had = std::move(had)});
}

std::int64_t ConfigFile::integer(std::string_view key, std::int64_t least) const {
  constexpr std::int64_t most = std::int64_t{1} << 40;
  const std::string wanted = fmt::format("a whole number from {} on", least);
  const nlohmann::json& value = at(key, wanted);
  if (!value.is_number_integer() || (value.is_number_unsigned() && value.get<std::uint64_t>() > most)) refuse(key, wanted);
  const auto number = value.get<std::int64_t>();
  if (number < least || number > most) refuse(key, wanted);
  return number;
}

std::int64_t ConfigFile::integer_or(std::string_view key, std::int64_t otherwise, std::int64_t least) const {
  return has(key) ? integer(key, least) : otherwise;
}

double ConfigFile::number(std::string_view key) const {
  const nlohmann::json& value = at(key, "a number");
  if (!value.is_number() || !std::isfinite(value.get<double>())) refuse(key, "a number");
  return value.get<double>();
}

double ConfigFile::number_or(std::string_view key, double otherwise) const { return has(key) ? number(key) : otherwise; }

bool ConfigFile::flag_or(std::string_view key, bool otherwise) const {
  const nlohmann::json* value = find(key);
  if (value == nullptr) return otherwise;
  if (!value->is_boolean()) refuse(key, "true or false");
  return value->get<bool>();
}

std::string ConfigFile::text(std::string_view key) const {
  const nlohmann::json& value = at(key, "a text");
  if (!value.is_string()) refuse(key, "a text");
  return value.get<std::string>();
}

std::string ConfigFile::text_or(std::string_view key, std::string_view otherwise) const {
  return has(key) ? text(key) : std::string(otherwise);
}

std::optional<std::vector<std::string>> ConfigFile::texts(std::string_view key) const {
  const nlohmann::json* value = find(key);
  if (value == nullptr) return {};
  std::vector<std::string> all;
  if (!value->is_array()) refuse(key, "a list of texts");
  for (const auto& each : *value) {
    if (!each.is_string()) refuse(key, "a list of texts");
    all.push_back(each.get<std::string>());
  }
  return all;
}

std::vector<double> ConfigFile::numbers(std::string_view key) const {
  const nlohmann::json& value = at(key, "a list of numbers");
  std::vector<double> all;
  if (!value.is_array()) refuse(key, "a list of numbers");
  for (const auto& each : value) {
    if (!each.is_number()) refuse(key, "a list of numbers");
    all.push_back(each.get<double>());
  }
  return all;
}

void ConfigFile::expect(std::string_view key, const nlohmann::json& value) const {
  const nlohmann::json* found = find(key);
  if (found != nullptr && *found != value) refuse(key, value.dump());
}

void ConfigFile::ignore(std::initializer_list<std::string_view> keys) const {
  for (const std::string_view key : keys) known_.emplace(key);
}

void ConfigFile::refuse_unknown() const {
  for (const auto& [key, value] : object_->items()) {
    const bool says_nothing = value.is_null() || value == false || (value.is_structured() && value.empty());
    if (!known_.contains(key) && !says_nothing) refuse(key, "no option of this name, which is not known");
  }
}

ConfigFile config_at(const std::filesystem::path& path) {
  std::error_code unknown;
  return ConfigFile(std::filesystem::is_directory(path, unknown) ? path / "config.json" : path);
}

ops::Activation activation_of(const ConfigFile& config, std::string_view key, ops::Activation otherwise) {
  if (!config.has(key)) return otherwise;
  const std::string name = config.text(key);
  if (name == "gelu") return ops::Activation::gelu_erf;
  if (name == "gelu_new" || name == "gelu_pytorch_tanh") return ops::Activation::gelu_tanh;
  if (name == "relu") return ops::Activation::relu;
  if (name == "silu" || name == "swish") return ops::Activation::silu;
  config.refuse(key, "gelu, gelu_new, gelu_pytorch_tanh, relu or silu");
}

std::string name_of_activation(ops::Activation activation) {
  switch (activation) {
    case ops::Activation::gelu_erf: return "gelu";
    case ops::Activation::gelu_tanh: return "gelu_pytorch_tanh";
    case ops::Activation::relu: return "relu";
    case ops::Activation::silu: return "silu";
    case ops::Activation::sigmoid: return "sigmoid";
    case ops::Activation::tanh: break;
  }
  return "tanh";
}

double not_negative(const ConfigFile& config, std::string_view key, double otherwise) {
  const double value = config.number_or(key, otherwise);
  if (!(value >= 0)) config.refuse(key, "a number from 0 on");
  return value;
}

double probability_of(const ConfigFile& config, std::string_view key, double otherwise) {
  const double value = config.number_or(key, otherwise);
  if (!(value >= 0 && value < 1)) config.refuse(key, "a probability in [0, 1)");
  return value;
}

int count_of(const ConfigFile& config, std::string_view key, int otherwise) {
  constexpr std::int64_t most = 100'000;
  const std::int64_t value = otherwise == 0 ? config.integer(key) : config.integer_or(key, otherwise);
  if (value > most) config.refuse(key, fmt::format("at most {}", most));
  return static_cast<int>(value);
}

std::vector<std::string> labels_of(const ConfigFile& config) {
  config.ignore({"label2id"});
  if (!config.has("id2label")) return {};
  const ConfigFile names(config, "id2label");
  std::vector<std::string> labels;
  while (names.has(std::to_string(labels.size()))) labels.push_back(names.text(std::to_string(labels.size())));
  names.refuse_unknown();
  return labels;
}

void add_labels(nlohmann::ordered_json& config, const std::vector<std::string>& labels, std::int64_t classes) {
  for (std::int64_t index = 0; index < classes; ++index) {
    const std::string name = labels.empty() ? fmt::format("LABEL_{}", index) : labels[static_cast<std::size_t>(index)];
    config["id2label"][std::to_string(index)] = name;
    config["label2id"][name] = index;
  }
}

void ignore_what_computes_nothing(const ConfigFile& config) {
  config.ignore({"architectures",
                 "_name_or_path",
                 "_commit_hash",
                 "auto_map",
                 "bos_token_id",
                 "eos_token_id",
                 "pad_token_id",
                 "use_cache",
                 "torch_dtype",
                 "dtype",
                 "tokenizer_class",
                 "id2label",
                 "label2id",
                 "problem_type",
                 "return_dict",
                 "chunk_size_feed_forward",
                 "temperature",
                 "top_k",
                 "top_p",
                 "do_sample",
                 "max_length",
                 "min_length",
                 "max_new_tokens",
                 "num_beams",
                 "repetition_penalty",
                 "is_llama_config",
                 "unsloth_version",
                 "transformers.js_config",
                 "transformers_version",
                 "_attn_implementation_autoset"});
}

}  // namespace trireme::models
