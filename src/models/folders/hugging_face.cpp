#include "trireme/models/folders/hugging_face.hpp"

#include <array>

#include "models/folders/expert_config.hpp"
#include "models/folders/hugging_face_config.hpp"
#include "models/folders/pretrained_folder.hpp"

namespace trireme::models {
namespace {

bool is_beside(std::string_view name) { return name.ends_with(".rotary_emb.inv_freq"); }

// Queries, keys and values are three tensors in the file, and each expert has its own.
nn::WeightsFormat format_of(const LlamaOptions& options, DType dtype) {
  const std::int64_t size = options.head_size == 0 ? options.width / options.heads : options.head_size;
  const std::array<std::pair<const char*, std::int64_t>, 3> projections{
      {{"q_proj", size * options.heads},
       {"k_proj", size * (options.kv_heads == 0 ? options.heads : options.kv_heads)},
       {"v_proj", size * (options.kv_heads == 0 ? options.heads : options.kv_heads)}}};
  return {.passed_over = is_beside,
          .optional_prefix = llama_prefix,
          .repeated = options.tied ? std::vector{llama_head()} : std::vector<nn::RepeatedTensor>{},
          .parts =
              [projections, options](const std::string& parameter) {
                std::vector<nn::StoredRows> parts = stored_experts(options, parameter);
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

}  // namespace

nn::LoadedWeights load_pretrained(Model& model, const LlamaOptions& options, const Location& path,
                                  const nn::LoadOptions& load) {
  return nn::load_weights({{.prefix = "", .model = model}}, path, format_of(options, DType::float32), load);
}

void save_pretrained(Model& model, const LlamaOptions& options, const Location& folder, const SavePretrainedOptions& save) {
  save_folder(model, config_of(options, save.dtype), format_of(options, save.dtype), folder, save);
}

}  // namespace trireme::models
