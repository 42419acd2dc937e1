#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>

#include "trireme/models/hugging_face.hpp"
#include "trireme/nn/weights_format.hpp"

// What load_pretrained() and save_pretrained() of all kinds of models do, once they know config and format.
namespace trireme::models {

nn::LoadedWeights load_folder(Model& model, const nn::WeightsFormat& format, const std::filesystem::path& folder,
                              const nn::LoadOptions& load);

// Numbers of special tokens that the config has are those of the folder that the model came from, if it has them.
void save_folder(Model& model, nlohmann::ordered_json config, const nn::WeightsFormat& format,
                 const std::filesystem::path& folder, const SavePretrainedOptions& save);

}  // namespace trireme::models
