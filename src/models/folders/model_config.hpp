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

// The config.json of a model's folder, or the file at `path`.
ConfigFile config_at(const Location& path);

// Throws if the model_type is of another family.
void require_family(const ConfigFile& config, Family wanted);

// The activation of an MLP by its name in a config, and the other way round.
ops::Activation activation_of(const ConfigFile& config, std::string_view key, ops::Activation otherwise);
std::string name_of_activation(ops::Activation activation);

double not_negative(const ConfigFile& config, std::string_view key, double otherwise);
double probability_of(const ConfigFile& config, std::string_view key, double otherwise);
// A number from 1 to 100,000. otherwise: used if the key is absent or null; 0: that is an error.
int count_of(const ConfigFile& config, std::string_view key, int otherwise = 0);

// labels_of() reads the names of a classifier's classes from "id2label"; empty if it is absent. add_labels() writes them, or
// standard names (LABEL_0, LABEL_1, ...) if there are none.
std::vector<std::string> labels_of(const ConfigFile& config);
bool are_standard(const std::vector<std::string>& labels);
void add_labels(nlohmann::ordered_json& config, const std::vector<std::string>& labels, std::int64_t classes);

// Whether the output layer is tied to the token embedding: as the config says, unless the folder holds a different output
// weight, which transformers loads too.
bool is_tied(const ConfigFile& config, const Location& folder, const nn::RepeatedTensor& head, const char* prefix);

// Call it after reading all keys of the model. Ignores keys that do not affect any model's results. Quantized weights and all
// other keys are an Error.
void refuse_the_rest(const ConfigFile& config);

}  // namespace trireme::models
