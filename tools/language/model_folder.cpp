#include "model_folder.hpp"

#include <fstream>
#include <nlohmann/json.hpp>

#include "trireme/core/error.hpp"

using namespace trireme;
using nlohmann::json;

namespace {

json read_object(const std::filesystem::path& path) {
  std::ifstream file(path);
  require(file.good(), "{} can't be read: a model is a folder of transformers, with config.json and model.safetensors",
          path.string());
  const json object = json::parse(file, nullptr, false);
  require(object.is_object(), "{} is no JSON object", path.string());
  return object;
}

// One number or several.
std::vector<std::int32_t> tokens_of(const json& config) {
  const auto found = config.find("eos_token_id");
  if (found == config.end()) return {};
  if (found->is_number_integer()) return {found->get<std::int32_t>()};
  std::vector<std::int32_t> tokens;
  for (const json& token : *found) {
    if (token.is_number_integer()) tokens.push_back(token.get<std::int32_t>());
  }
  return tokens;
}

}  // namespace

ModelFolder read_model_folder(const std::filesystem::path& path) {
  const json config = read_object(path / "config.json");
  ModelFolder folder{.path = path, .type = config.value("model_type", std::string())};
  const std::filesystem::path generation = path / "generation_config.json";
  if (std::filesystem::exists(generation)) folder.stop = tokens_of(read_object(generation));
  if (folder.stop.empty()) folder.stop = tokens_of(config);
  return folder;
}
