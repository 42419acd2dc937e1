#include "models/folders/pretrained_folder.hpp"

#include <exception>
#include <span>

#include "trireme/files/file_system.hpp"

namespace trireme::models {
namespace {

void remove_file(const Location& path) {
  if (!is_folder(path)) file_system_of(path)->remove_all(path);
}

void copy_beside(const Location& file, const Location& copy) {
  if (!is_there(file) || is_same(file, copy)) return;
  const auto from = open_file(file);
  FileReplacement to(copy);
  to.write({from->map().get(), from->size()});
  to.commit();
}

// Copies the tokenizer files that transformers may write, as far as they exist; or one tokenizer file, and the files of its
// special tokens beside it.
void copy_tokenizer(const Location& from, const Location& to) {
  if (from.empty()) return;
  const bool of_folder = is_folder(from);
  if (!is_same(of_folder ? from : from.parent(), to)) remove_file(to / "chat_template.jinja");  // of another tokenizer
  if (!of_folder) {
    const std::string ending = from.extension();
    copy_beside(from, to / (ending == ".json" ? "tokenizer.json" : ending == ".model" ? "tokenizer.model" : "vocab.txt"));
    for (const char* name : {"tokenizer_config.json", "special_tokens_map.json", "added_tokens.json"})
      copy_beside(from.parent() / name, to / name);
    return;
  }
  for (const char* name : {"tokenizer.json", "tokenizer_config.json", "tokenizer.model", "special_tokens_map.json",
                           "vocab.json", "merges.txt", "vocab.txt", "added_tokens.json", "chat_template.jinja"}) {
    copy_beside(from / name, to / name);
  }
}

// Copies the other files that transformers writes with a model.
void copy_processors(const Location& from, const Location& to) {
  for (const char* name : {"generation_config.json", "preprocessor_config.json"}) copy_beside(from / name, to / name);
}

void write_text(const std::string& text, const Location& path) {
  FileReplacement file(path);
  file.write(std::as_bytes(std::span(text)));
  file.commit();
}

// The JSON in a file; discarded if there is no file, or no JSON in it.
nlohmann::ordered_json json_in(const Location& path) {
  const std::string text = is_there(path) ? open_file(path)->content() : "";
  return nlohmann::ordered_json::parse(text, nullptr, false);
}

// Writes the chat template, and removes the one in tokenizer_config.json.
void write_chat_template(const std::string& text, const Location& folder) {
  const Location path = folder / "tokenizer_config.json";
  auto config = json_in(path);
  if (config.is_object() && config.erase("chat_template") > 0) write_json(config, path);
  write_text(text, folder / "chat_template.jinja");
}

// Sets the numbers of special tokens that the config has to those of the folder `from`, if it has them.
void take_special_tokens(nlohmann::ordered_json& config, const Location& from) {
  if (from.empty()) return;
  const auto known = json_in(from / "config.json");
  for (const char* key : {"bos_token_id", "eos_token_id", "pad_token_id"}) {
    const auto found = known.is_object() ? known.find(key) : known.end();
    const bool is_known = known.is_object() && found != known.end() && (found->is_number_integer() || found->is_array());
    if (config.contains(key) && is_known) config[key] = *found;
  }
}

}  // namespace

void write_json(const nlohmann::ordered_json& json, const Location& path) {
  // Labels may be invalid UTF-8.
  write_text(json.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n", path);
}

void write_folder(const nn::PrefixedModel& model, const nn::WeightsFormat& format, const Location& folder, const char* weights,
                  const std::function<void()>& write_beside) {
  const auto is_first = [](const Axis& ranks) { return ranks == nullptr || ranks->rank() == 0; };
  const ModelContext& context = model.model.context();
  const bool writes = is_first(context.pipeline) && is_first(context.parts());
  // A rank that can't write still receives what the others send, so that none of them waits for it.
  std::exception_ptr failed;
  const auto attempt = [&failed](const auto& work) {
    try {
      work();
    } catch (...) {
      if (!failed) failed = std::current_exception();
    }
  };
  if (writes) attempt([&] { file_system_of(folder)->create_folder(folder); });
  if (weights != nullptr) attempt([&] { nn::save_weights({model}, folder / weights, format); });
  if (writes && !failed) attempt(write_beside);
  const auto tell = [&failed] {
    if (failed) std::rethrow_exception(failed);
  };
  nn::agree(model.model, tell, "write a folder");
}

void save_folder(Model& model, nlohmann::ordered_json config, const nn::WeightsFormat& format, const Location& folder,
                 const SavePretrainedOptions& save, const nlohmann::ordered_json& image_processor) {
  write_folder({.prefix = "", .model = model}, format, folder, save.weights ? "model.safetensors" : nullptr, [&] {
    take_special_tokens(config, save.from);
    write_json(config, folder / "config.json");
    remove_file(folder / "model.safetensors.index.json");  // of other weights
    if (!save.from.empty()) copy_processors(save.from, folder);
    const bool has_processor = !save.from.empty() && is_there(save.from / "preprocessor_config.json");
    if (!image_processor.is_null() && !has_processor) write_json(image_processor, folder / "preprocessor_config.json");
    const Location tokenizer = save.tokenizer.value_or(save.from);
    copy_tokenizer(tokenizer, folder);
    if (!save.chat_template.empty()) write_chat_template(save.chat_template, folder);
  });
}

}  // namespace trireme::models
