#include "trireme/models/hugging_face.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <exception>
#include <fstream>
#include <nlohmann/json.hpp>
#include <span>
#include <system_error>

#include "models/hugging_face_config.hpp"
#include "trireme/core/file.hpp"
#include "trireme/nn/weights_format.hpp"

namespace trireme::models {
namespace {

bool is_beside(std::string_view name) { return name.ends_with(".rotary_emb.inv_freq"); }
bool is_beside_or_tied(std::string_view name) { return is_beside(name) || name == "lm_head.weight"; }

// Queries, keys and values are three tensors in the file.
nn::WeightsFormat format_of(const LlamaOptions& options, DType dtype) {
  const std::int64_t size = options.head_size == 0 ? options.width / options.heads : options.head_size;
  const std::array<std::pair<const char*, std::int64_t>, 3> projections{
      {{"q_proj", size * options.heads},
       {"k_proj", size * (options.kv_heads == 0 ? options.heads : options.kv_heads)},
       {"v_proj", size * (options.kv_heads == 0 ? options.heads : options.kv_heads)}}};
  return {.passed_over = options.tied ? is_beside_or_tied : is_beside,
          .parts =
              [projections](const std::string& parameter) {
                std::vector<nn::StoredRows> parts;
                constexpr std::string_view packed = "qkv_proj";
                const std::size_t place = parameter.find(packed);
                if (place == std::string::npos) return parts;
                for (const auto& [name, rows] : projections) {
                  std::string of_file = parameter;
                  parts.push_back({.name = of_file.replace(place, packed.size(), name), .count = rows});
                }
                return parts;
              },
          .dtype = dtype};
}

void make_folder(const std::filesystem::path& folder) {
  std::error_code failed;
  std::filesystem::create_directories(folder, failed);
  if (!failed) return;
  throw Error({.code = ErrorCode::io,
               .message = "the folder of a model can't be made: " + failed.message(),
               .path = folder.string(),
               .error_number = failed.value()});
}

// The files of a tokenizer that transformers may write, as far as there are any.
void copy_tokenizer(const std::filesystem::path& from, const std::filesystem::path& to) {
  for (const char* name :
       {"tokenizer.json", "tokenizer_config.json", "tokenizer.model", "special_tokens_map.json", "vocab.json", "merges.txt",
        "vocab.txt", "added_tokens.json", "chat_template.jinja", "generation_config.json"}) {
    std::error_code failed, same;
    if (!std::filesystem::exists(from / name, failed) || std::filesystem::equivalent(from / name, to / name, same)) continue;
    std::filesystem::copy_file(from / name, to / name, std::filesystem::copy_options::overwrite_existing, failed);
    if (!failed) continue;
    throw Error({.code = ErrorCode::io,
                 .message = "a file of the tokenizer can't be copied: " + failed.message(),
                 .path = (to / name).string(),
                 .error_number = failed.value()});
  }
}

// The numbers of special tokens: those of the folder, or none, which must be said: transformers has standard ones.
void add_special_tokens(nlohmann::ordered_json& config, const std::filesystem::path& from) {
  std::ifstream file(from / "config.json");
  const auto known = from.empty() ? nlohmann::json() : nlohmann::json::parse(file, nullptr, false);
  for (const char* key : {"bos_token_id", "eos_token_id", "pad_token_id"}) {
    const auto found = known.is_object() ? known.find(key) : known.end();
    const bool is_known = known.is_object() && found != known.end() && (found->is_number_integer() || found->is_array());
    config[key] = is_known ? nlohmann::ordered_json(*found) : nullptr;
  }
}

}  // namespace

nn::LoadedWeights load_pretrained(Model& model, const LlamaOptions& options, const std::filesystem::path& folder,
                                  const nn::LoadOptions& load) {
  const std::vector<nn::PrefixedModel> models{{.prefix = "", .model = model}};
  const nn::WeightsFormat format = format_of(options, DType::float32);
  return model.store().dtype() == DType::float64 ? nn::load_weights<double>(models, folder.string(), format, load)
                                                 : nn::load_weights<float>(models, folder.string(), format, load);
}

void save_pretrained(Model& model, const LlamaOptions& options, const std::filesystem::path& folder,
                     const SavePretrainedOptions& save) {
  nlohmann::ordered_json config = config_of(options, save.dtype);
  const std::vector<nn::PrefixedModel> models{{.prefix = "", .model = model}};
  const nn::WeightsFormat format = format_of(options, save.dtype);
  const auto is_first = [](const Axis& ranks) { return ranks == nullptr || ranks->rank() == 0; };
  const bool writes = is_first(model.context().pipeline) && is_first(model.context().tensor);
  // A rank that can't write still takes what the others give: none of them waits for it.
  std::exception_ptr failed;
  const auto attempt = [&failed](const auto& work) {
    try {
      work();
    } catch (...) {
      if (!failed) failed = std::current_exception();
    }
  };
  if (writes) attempt([&] { make_folder(folder); });
  attempt([&] {
    const std::string path = (folder / "model.safetensors").string();
    model.store().dtype() == DType::float64 ? nn::save_weights<double>(models, path, format)
                                            : nn::save_weights<float>(models, path, format);
  });
  if (writes && !failed) {
    attempt([&] {
      add_special_tokens(config, save.from);
      const std::string text = config.dump(2) + "\n";
      FileReplacement file(folder / "config.json");
      file.write(std::as_bytes(std::span(text)));
      file.commit();
      std::error_code unknown;
      std::filesystem::remove(folder / "model.safetensors.index.json", unknown);  // of other weights
      if (!save.from.empty()) copy_tokenizer(save.from, folder);
    });
  }
  if (failed) std::rethrow_exception(failed);
}

}  // namespace trireme::models
