#include "corpus.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "trireme/core/error.hpp"
#include "trireme/data/text/text.hpp"
#include "trireme/files/file_system.hpp"
#include "trireme/tokenizers/files/read_tokenizer.hpp"

using namespace trireme;

namespace {

std::string content_of(const void* bytes, std::size_t count) {
  return data::content_of(std::string_view(static_cast<const char*>(bytes), count));
}

std::optional<std::int32_t> first_known(const tokenizers::Tokenizer& tokenizer, std::initializer_list<const char*> names) {
  for (const char* name : names) {
    if (const auto token = tokenizer.find(name)) return token;
  }
  return std::nullopt;
}

// The path of the tokenizer; empty for bytes.
Location tokenizer_path(const LmRecipe& recipe) {
  if (recipe.tokenizer == "byte") return "";
  return recipe.tokenizer.empty() ? source_of(recipe) : Location(recipe.tokenizer);
}

// The chat template of the model's folder, if it is a known one.
std::optional<std::string> template_of_folder(const LmRecipe& recipe, const tokenizers::Tokenizer& tokenizer) {
  const Location path = tokenizer_path(recipe);
  return path.empty() ? std::nullopt : tokenizers::ChatTemplate::known_in(path, tokenizer);
}

std::string template_of(const LmRecipe& recipe, const std::optional<std::string>& of_folder) {
  if (!recipe.chat_template.empty()) return recipe.chat_template;
  if (of_folder) return *of_folder;
  const Location path = tokenizer_path(recipe);
  const auto unknown = path.empty() ? std::nullopt : tokenizers::ChatTemplate::file_in(path);
  const std::string nowhere = path.empty() ? "a model without a folder" : path.string();
  throw Error(
      {.code = ErrorCode::invalid_argument,
       .message = unknown ? fmt::format("--chat-template is missing: the template in {} is none of those that are known here",
                                        unknown->string())
                          : fmt::format("--chat-template is missing: {} has no chat template", nowhere),
       .hint = fmt::format("name the one that the model was made for, or is to learn: {}",
                           fmt::join(tokenizers::ChatTemplate::names(), ", "))});
}

}  // namespace

data::TextBatch Masking::operator()(const data::TokenBatch& windows) const {
  const std::int64_t time = windows.time() + num_around();
  Tensor<std::int32_t> tokens({windows.rows(), time});
  for (std::int64_t row = 0; row < windows.rows(); ++row) {
    std::int32_t* to = std::ranges::copy(before, tokens.data() + row * time).out;
    to = std::copy_n(windows.tokens.data() + row * windows.time(), windows.time(), to);
    std::ranges::copy(after, to);
  }
  return data::mask_tokens(data::TokenBatch{.tokens = tokens, .first_sample = windows.first_sample}, options);
}

Location source_of(const LmRecipe& recipe) {
  const std::string& folder = recipe.init.empty() ? recipe.model : recipe.init;
  return is_folder(folder) ? Location(folder) : Location();
}

std::optional<tokenizers::Tokenizer> tokenizer_of(const LmRecipe& recipe) {
  if (!recipe.tokenizer.empty() && recipe.tokenizer != "byte") return tokenizers::read_tokenizer(recipe.tokenizer);
  const Location source = source_of(recipe);
  const bool has_text = recipe.tokens == "text" || recipe.tokens == "instructions";
  if (!has_text && recipe.tokenizer.empty() && recipe.sample == 0) return std::nullopt;
  if (recipe.tokenizer.empty() && !source.empty() && tokenizers::has_tokenizer(source)) {
    return tokenizers::read_tokenizer(source);
  }
  return has_text || recipe.tokenizer == "byte" ? std::optional(tokenizers::Tokenizer::bytes()) : std::nullopt;
}

std::optional<Location> named_tokenizer(const LmRecipe& recipe) {
  if (recipe.tokenizer.empty()) return std::nullopt;
  return recipe.tokenizer == "byte" ? Location() : Location(recipe.tokenizer);
}

Corpus read_corpus(const LmRecipe& recipe, const std::optional<tokenizers::Tokenizer>& tokenizer) {
  if (recipe.tokens != "text") {
    return {.tokens = data::TokenDataset::map(recipe.data, recipe.tokens == "uint16" ? DType::uint16 : DType::uint32),
            .content = {}};
  }
  std::string text = data::read_text(recipe.data);
  if (tokenizer->is_of_bytes()) {
    const std::string content = data::content_of(text);
    return {.tokens = data::TokenDataset::from_bytes(std::move(text)), .content = content};
  }
  const std::vector<std::int32_t> tokens = tokenizer->encode(text, {.add_special_tokens = false});
  return {.tokens = data::TokenDataset::from_tokens(tokens), .content = content_of(tokens.data(), 4 * tokens.size())};
}

void check_vocabulary(const LmRecipe& recipe, const data::TokenDataset& tokens, std::int64_t vocabulary) {
  if (tokens.largest() < vocabulary) return;
  std::vector<std::int32_t> part(1 << 16);
  for (std::int64_t first = 0; first < tokens.size(); first += std::ssize(part)) {
    part.resize(static_cast<std::size_t>(std::min(std::ssize(part), tokens.size() - first)));
    tokens.window(first, part);
    const auto largest = std::ranges::max_element(part);
    require(*largest < vocabulary, "{}: token {} is {}, the model has {}", recipe.data, first + (largest - part.begin()),
            *largest, vocabulary);
  }
}

void check_vocabulary(const LmRecipe& recipe, const data::Documents& documents, std::int64_t vocabulary) {
  for (std::int64_t number = 0; number < documents.size(); ++number) {
    const std::int32_t largest = std::ranges::max(documents[number].tokens);
    require(largest < vocabulary, "{}: a conversation has the token {}, the model has {}: does the tokenizer belong to it?",
            recipe.data, largest, vocabulary);
  }
}

Answers read_answers(const LmRecipe& recipe, const tokenizers::Tokenizer& tokenizer) {
  const auto of_folder = template_of_folder(recipe, tokenizer);
  const std::string name = template_of(recipe, of_folder);
  const tokenizers::ChatTemplate chat(name, tokenizer, tokenizers::text_marks(tokenizer, tokenizer_path(recipe)));
  const std::vector<data::Conversation> all = data::read_conversations(recipe.data);
  const auto num_validation =
      static_cast<std::size_t>(std::floor(static_cast<double>(all.size()) * recipe.validation_fraction));
  const auto parts = std::span(all);
  const std::size_t num_training = all.size() - num_validation;
  Answers answers{
      .training = data::encode_conversations(chat, parts.first(num_training), recipe.block), .validation = {}, .content = {}};
  const bool goes_along = name == of_folder && is_folder(tokenizer_path(recipe));
  if (!tokenizer.is_of_bytes() && !goes_along) answers.chat_template = chat.jinja();
  if (num_validation > 0) answers.validation = data::encode_conversations(chat, parts.subspan(num_training), recipe.block);
  std::vector<std::int32_t> read;
  for (const auto* part : {&answers.training, &answers.validation}) {
    for (std::int64_t number = 0; number < part->documents.size(); ++number) {
      const auto [tokens, targets] = part->documents[number];
      read.insert(read.end(), tokens.begin(), tokens.end());
      read.insert(read.end(), targets.begin(), targets.end());
    }
  }
  answers.content = content_of(read.data(), 4 * read.size());
  return answers;
}

Masking masking_of(const LmRecipe& recipe, std::optional<tokenizers::Tokenizer> tokenizer, std::int64_t vocabulary,
                   std::uint64_t seed) {
  const Location source = source_of(recipe);
  if (!tokenizer && !source.empty() && tokenizers::has_tokenizer(source)) tokenizer = tokenizers::read_tokenizer(source);
  require(tokenizer.has_value(), "--tokens {} have no mask token: name the --tokenizer that they are of", recipe.tokens);
  Masking masking{.options = {.vocabulary = vocabulary, .seed = seed}, .before = {}, .after = {}};
  if (tokenizer->is_of_bytes()) return masking;  // byte 0, which no text has, is the mask
  const auto mask = first_known(*tokenizer, {"[MASK]", "<mask>"});
  require(mask.has_value(),
          "the tokenizer has no mask token, [MASK] or <mask>, which a BERT is trained with: name another one");
  masking.options.mask_token = *mask;
  if (const auto begin = first_known(*tokenizer, {"[CLS]", "<s>"})) masking.before = {*begin};
  if (const auto end = first_known(*tokenizer, {"[SEP]", "</s>"})) masking.after = {*end};
  masking.options.special = masking.before;
  masking.options.special.insert(masking.options.special.end(), masking.after.begin(), masking.after.end());
  return masking;
}
