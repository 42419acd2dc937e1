#include "corpus.hpp"

#include <algorithm>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "trireme/core/error.hpp"
#include "trireme/core/file.hpp"
#include "trireme/data/content.hpp"
#include "trireme/data/text.hpp"
#include "trireme/tokenizers/read_tokenizer.hpp"

using namespace trireme;

std::filesystem::path source_of(const LmRecipe& recipe) {
  const std::string& folder = recipe.init.empty() ? recipe.model : recipe.init;
  std::error_code unknown;
  return std::filesystem::is_directory(folder, unknown) ? folder : "";
}

std::optional<tokenizers::Tokenizer> tokenizer_of(const LmRecipe& recipe) {
  if (!recipe.tokenizer.empty() && recipe.tokenizer != "byte") return tokenizers::read_tokenizer(recipe.tokenizer);
  const std::filesystem::path source = source_of(recipe);
  if (recipe.tokens != "text" && recipe.tokenizer.empty() && recipe.sample == 0) return std::nullopt;
  if (recipe.tokenizer.empty() && !source.empty() && tokenizers::has_tokenizer(source)) {
    return tokenizers::read_tokenizer(source);
  }
  return recipe.tokens == "text" || recipe.tokenizer == "byte" ? std::optional(tokenizers::Tokenizer::bytes()) : std::nullopt;
}

std::optional<std::filesystem::path> named_tokenizer(const LmRecipe& recipe) {
  if (recipe.tokenizer.empty()) return std::nullopt;
  return recipe.tokenizer == "byte" ? std::filesystem::path() : std::filesystem::path(recipe.tokenizer);
}

Corpus read_corpus(const LmRecipe& recipe, const std::optional<tokenizers::Tokenizer>& tokenizer) {
  const auto content_of = [](const void* bytes, std::size_t count) {
    return data::content_of(std::string_view(static_cast<const char*>(bytes), count));
  };
  if (recipe.tokens != "text") {
    const auto all = data::TokenDataset::map(recipe.data, recipe.tokens == "uint16" ? DType::uint16 : DType::uint32);
    const File file = File::open(recipe.data);
    const auto bytes = file.map();
    return {.tokens = all, .content = content_of(bytes.get(), file.size())};
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
  std::vector<std::int32_t> part(1 << 16);
  for (std::int64_t first = 0; first < tokens.size(); first += std::ssize(part)) {
    part.resize(static_cast<std::size_t>(std::min(std::ssize(part), tokens.size() - first)));
    tokens.window(first, part);
    const auto largest = std::ranges::max_element(part);
    require(*largest < vocabulary, "{}: token {} is {}, the model has {}", recipe.data, first + (largest - part.begin()),
            *largest, vocabulary);
  }
}
