#pragma once

#include <string>

#include "files/config_file.hpp"
#include "models/folders/hugging_face_config.hpp"
#include "trireme/nn/weights/weights_format.hpp"

// What configs of mixtures of experts have besides those of a Llama: model_type mixtral, qwen2_moe and qwen3_moe.
namespace trireme::models {

// The model_type of the same model without experts: mistral, qwen2, qwen3. Other types are returned as they are.
std::string type_without_experts(const std::string& type);

void read_experts(const ConfigFile& config, const std::string& type, LlamaOptions& options);

// The model_type of a model with experts, or an Error where transformers has none.
std::string type_with_experts(const LlamaOptions& options);
void add_experts(const LlamaOptions& options, const std::string& type, nlohmann::ordered_json& config);

// The tensors of a file that hold a parameter of a mixture; empty for other parameters.
std::vector<nn::StoredRows> stored_experts(const LlamaOptions& options, const std::string& parameter);

[[noreturn]] void refuse_to_save(const std::string& what);

}  // namespace trireme::models
