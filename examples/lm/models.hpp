#pragma once

#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "recipe.hpp"
#include "trireme/models/architectures/bert.hpp"
#include "trireme/models/architectures/gpt.hpp"
#include "trireme/models/architectures/gpt_neox.hpp"
#include "trireme/models/architectures/llama.hpp"
#include "trireme/tokenizers/codecs/tokenizer.hpp"

// What --model may say beside folders.
std::vector<std::string> names_of_sizes();

using LmOptions = std::variant<trireme::models::LlamaOptions, trireme::models::GptOptions, trireme::models::GptNeoXOptions,
                               trireme::models::BertOptions>;

// Of --model, or of --init where that is not given: by model_type of the folder's config.json. What has a name has the tokens
// of the tokenizer, or of bytes.
LmOptions model_options(const LmRecipe& recipe, const std::optional<trireme::tokenizers::Tokenizer>& tokenizer);

// The model of such options: LmModel<P, D, Options>.
template <typename P, typename D, typename Options>
struct ModelOfOptions;
template <typename P, typename D>
struct ModelOfOptions<P, D, trireme::models::LlamaOptions> {
  using Type = trireme::models::Llama<P, D>;
};
template <typename P, typename D>
struct ModelOfOptions<P, D, trireme::models::GptOptions> {
  using Type = trireme::models::Gpt<P, D>;
};
template <typename P, typename D>
struct ModelOfOptions<P, D, trireme::models::GptNeoXOptions> {
  using Type = trireme::models::GptNeoX<P, D>;
};
template <typename P, typename D>
struct ModelOfOptions<P, D, trireme::models::BertOptions> {
  using Type = trireme::models::Bert<P, D>;
};
template <typename P, typename D, typename Options>
using LmModel = typename ModelOfOptions<P, D, Options>::Type;
