#pragma once

#include <functional>
#include <nlohmann/json.hpp>

#include "trireme/files/location.hpp"
#include "trireme/models/folders/hugging_face.hpp"
#include "trireme/nn/weights/weights_format.hpp"

// What save_pretrained() of all kinds of models does, once it knows config and format.
namespace trireme::models {

// Writes the weights to a file of the folder, unless that is null, and on the rank that writes them calls write_beside() for
// the others. All ranks of a divided model call it; the folder is made where there is none.
void write_folder(const nn::PrefixedModel& model, const nn::WeightsFormat& format, const Location& folder, const char* weights,
                  const std::function<void()>& write_beside);
void write_json(const nlohmann::ordered_json& json, const Location& path);

// `image_processor`: preprocessor_config.json where save.from has none; null: none. Numbers of special tokens that the config
// has are those of the folder that the model came from, if it has them.
void save_folder(Model& model, nlohmann::ordered_json config, const nn::WeightsFormat& format, const Location& folder,
                 const SavePretrainedOptions& save, const nlohmann::ordered_json& image_processor = nullptr);

}  // namespace trireme::models
