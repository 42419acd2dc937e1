#include "models/folders/pretrained_folder.hpp"

#include <exception>
#include <span>
#include <system_error>

#include "trireme/files/file.hpp"

namespace trireme::models {
namespace {

void make_folder(const std::filesystem::path& folder) {
  std::error_code failed;
  std::filesystem::create_directories(folder, failed);
  if (!failed) return;
  throw Error({.code = ErrorCode::io,
               .message = "the folder of a model can't be made: " + failed.message(),
               .path = folder.string(),
               .error_number = failed.value()});
}

void copy_beside(const std::filesystem::path& file, const std::filesystem::path& copy) {
  std::error_code failed, same;
  if (!std::filesystem::exists(file, failed) || std::filesystem::equivalent(file, copy, same)) return;
  std::filesystem::copy_file(file, copy, std::filesystem::copy_options::overwrite_existing, failed);
  if (!failed) return;
  throw Error({.code = ErrorCode::io,
               .message = "a file beside the weights can't be copied: " + failed.message(),
               .path = copy.string(),
               .error_number = failed.value()});
}

// The files of a tokenizer that transformers may write, as far as there are any; or the one that is named, with what lies
// beside it of its special tokens.
void copy_tokenizer(const std::filesystem::path& from, const std::filesystem::path& to) {
  std::error_code unknown;
  if (from.empty()) return;
  const bool is_folder = std::filesystem::is_directory(from, unknown);
  if (!std::filesystem::equivalent(is_folder ? from : from.parent_path(), to, unknown)) {
    std::filesystem::remove(to / "chat_template.jinja", unknown);  // of another tokenizer
  }
  if (!is_folder) {
    const std::string ending = from.extension().string();
    copy_beside(from, to / (ending == ".json" ? "tokenizer.json" : ending == ".model" ? "tokenizer.model" : "vocab.txt"));
    for (const char* name : {"tokenizer_config.json", "special_tokens_map.json", "added_tokens.json"})
      copy_beside(from.parent_path() / name, to / name);
    return;
  }
  for (const char* name : {"tokenizer.json", "tokenizer_config.json", "tokenizer.model", "special_tokens_map.json",
                           "vocab.json", "merges.txt", "vocab.txt", "added_tokens.json", "chat_template.jinja"}) {
    copy_beside(from / name, to / name);
  }
}

// What else transformers writes beside a model.
void copy_processors(const std::filesystem::path& from, const std::filesystem::path& to) {
  for (const char* name : {"generation_config.json", "preprocessor_config.json"}) copy_beside(from / name, to / name);
}

void write_text(const std::string& text, const std::filesystem::path& path) {
  FileReplacement file(path);
  file.write(std::as_bytes(std::span(text)));
  file.commit();
}

// Discarded where there is no file, or no JSON in it.
nlohmann::ordered_json json_in(const std::filesystem::path& path) {
  const std::string text = std::filesystem::exists(path) ? File::open(path).content() : "";
  return nlohmann::ordered_json::parse(text, nullptr, false);
}

// The only one that the folder has.
void write_chat_template(const std::string& text, const std::filesystem::path& folder) {
  const std::filesystem::path path = folder / "tokenizer_config.json";
  auto config = json_in(path);
  if (config.is_object() && config.erase("chat_template") > 0) write_json(config, path);
  write_text(text, folder / "chat_template.jinja");
}

// The numbers of special tokens, where the config of such a model has some: those of the folder `from`, or what the config
// says.
void take_special_tokens(nlohmann::ordered_json& config, const std::filesystem::path& from) {
  if (from.empty()) return;
  const auto known = json_in(from / "config.json");
  for (const char* key : {"bos_token_id", "eos_token_id", "pad_token_id"}) {
    const auto found = known.is_object() ? known.find(key) : known.end();
    const bool is_known = known.is_object() && found != known.end() && (found->is_number_integer() || found->is_array());
    if (config.contains(key) && is_known) config[key] = *found;
  }
}

}  // namespace

void write_json(const nlohmann::ordered_json& json, const std::filesystem::path& path) {
  // Names of classes may be no UTF-8.
  write_text(json.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n", path);
}

void write_folder(const nn::PrefixedModel& model, const nn::WeightsFormat& format, const std::filesystem::path& folder,
                  const char* weights, const std::function<void()>& write_beside) {
  const auto is_first = [](const Axis& ranks) { return ranks == nullptr || ranks->rank() == 0; };
  const ModelContext& context = model.model.context();
  const bool writes = is_first(context.pipeline) && is_first(context.parts());
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
  if (weights != nullptr) attempt([&] { nn::save_weights({model}, (folder / weights).string(), format); });
  if (writes && !failed) attempt(write_beside);
  const auto tell = [&failed] {
    if (failed) std::rethrow_exception(failed);
  };
  nn::agree(model.model, tell, "write a folder");
}

void save_folder(Model& model, nlohmann::ordered_json config, const nn::WeightsFormat& format,
                 const std::filesystem::path& folder, const SavePretrainedOptions& save,
                 const nlohmann::ordered_json& image_processor) {
  write_folder({.prefix = "", .model = model}, format, folder, save.weights ? "model.safetensors" : nullptr, [&] {
    take_special_tokens(config, save.from);
    write_json(config, folder / "config.json");
    std::error_code unknown;
    std::filesystem::remove(folder / "model.safetensors.index.json", unknown);  // of other weights
    if (!save.from.empty()) copy_processors(save.from, folder);
    const bool has_processor = !save.from.empty() && std::filesystem::exists(save.from / "preprocessor_config.json", unknown);
    if (!image_processor.is_null() && !has_processor) write_json(image_processor, folder / "preprocessor_config.json");
    const std::filesystem::path tokenizer = save.tokenizer.value_or(save.from);
    copy_tokenizer(tokenizer, folder);
    if (!save.chat_template.empty()) write_chat_template(save.chat_template, folder);
  });
}

}  // namespace trireme::models
