#include "model_folder.hpp"

#include <nlohmann/json.hpp>

#include "trireme/core/error.hpp"
#include "trireme/files/file_system.hpp"
#include "trireme/files/json_fault.hpp"

using namespace trireme;
using nlohmann::json;

namespace {

json read_object(const Location& path) {
  const std::string text = open_file(path)->content();
  const json object = json::parse(text, nullptr, false);
  require(object.is_object(), "{} is not a JSON object{}", path.string(), why_no_json(text));
  return object;
}

// eos_token_id is one number or an array of numbers.
std::vector<std::int32_t> tokens_of(const json& config) {
  const auto found = config.find("eos_token_id");
  if (found == config.end()) return {};
  std::vector<std::int32_t> tokens;
  const auto add = [&tokens](const json& token) {
    if (!token.is_number_integer()) return;
    const auto number = token.get<std::int64_t>();
    if (number >= 0 && number <= INT32_MAX) tokens.push_back(static_cast<std::int32_t>(number));
  };
  if (found->is_array()) {
    for (const json& token : *found) add(token);
  } else {
    add(*found);
  }
  return tokens;
}

}  // namespace

ModelFolder read_model_folder(const Location& path, const Location& adapter,
                              const std::map<models::Family, std::string>& refused) {
  require(is_folder(path),
          "{} is not a folder: a model is a folder of transformers, with config.json and model.safetensors, or a checkpoint",
          path.string());
  const bool saved = is_checkpoint(path);
  ModelFolder folder{.path = saved ? description_of(path) : path, .checkpoint = saved ? path : "", .adapter = adapter};
  folder.family = folder.path.empty() ? models::Family::gpt2 : models::family_of(folder.path, refused);
  if (folder.path.empty()) return folder;
  const Location generation = folder.path / "generation_config.json";
  if (is_there(generation)) folder.stop = tokens_of(read_object(generation));
  if (folder.stop.empty()) folder.stop = tokens_of(read_object(folder.path / "config.json"));
  return folder;
}
