#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "files/config_file.hpp"
#include "trireme/files/location.hpp"
#include "trireme/models/folders/hugging_face.hpp"
#include "trireme/nn/weights/weights_format.hpp"
#include "trireme/ops/elementwise/elementwise_options.hpp"

namespace trireme::models {

// Of the folder of a model, or the file that is named.
ConfigFile config_at(const Location& path);

// Refuses a model_type of another family.
void require_family(const ConfigFile& config, Family wanted);

// What a config calls the function between the layers of an MLP, and back.
ops::Activation activation_of(const ConfigFile& config, std::string_view key, ops::Activation otherwise);
std::string name_of_activation(ops::Activation activation);

double not_negative(const ConfigFile& config, std::string_view key, double otherwise);
double probability_of(const ConfigFile& config, std::string_view key, double otherwise);
// From 1 to 100,000; otherwise: of a key that is absent or null, 0: that is refused.
int count_of(const ConfigFile& config, std::string_view key, int otherwise = 0);

// The names of a classifier's classes, by "id2label"; none where it says nothing of them. Back, with standard names for none,
// LABEL_0 and so on.
std::vector<std::string> labels_of(const ConfigFile& config);
bool are_standard(const std::vector<std::string>& labels);
void add_labels(nlohmann::ordered_json& config, const std::vector<std::string>& labels, std::int64_t classes);

// Whether the output layer is the token embedding: as the config says, unless the folder holds another one. transformers loads
// that one too.
bool is_tied(const ConfigFile& config, const Location& folder, const nn::RepeatedTensor& head, const char* prefix);

// Once all that a model has is read: what computes nothing, whichever model it is, is passed over. Weights that are quantized
// and any other key are refused.
void refuse_the_rest(const ConfigFile& config);

}  // namespace trireme::models
