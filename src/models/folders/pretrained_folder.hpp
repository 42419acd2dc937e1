#pragma once

#include <functional>
#include <nlohmann/json.hpp>

#include "trireme/files/location.hpp"
#include "trireme/models/folders/hugging_face.hpp"
#include "trireme/nn/weights/weights_format.hpp"

// The part of save_pretrained() that all kinds of models share.
namespace trireme::models {

// Writes the weights to the file `weights` of the folder, unless it is null, then calls write_beside() for the other files, on
// the writing rank only. All ranks of a divided model call it. Creates the folder if it does not exist.
void write_folder(const nn::PrefixedModel& model, const nn::WeightsFormat& format, const Location& folder, const char* weights,
                  const std::function<void()>& write_beside);
void write_json(const nlohmann::ordered_json& json, const Location& path);

// image_processor: written as preprocessor_config.json if save.from has no such file; null: none. The numbers of special tokens
// in the config are replaced by those of save.from, if it has them.
void save_folder(Model& model, nlohmann::ordered_json config, const nn::WeightsFormat& format, const Location& folder,
                 const SavePretrainedOptions& save, const nlohmann::ordered_json& image_processor = nullptr);

}  // namespace trireme::models
