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

// The names that --model accepts besides folders.
std::vector<std::string> names_of_sizes();

using LmOptions = std::variant<trireme::models::LlamaOptions, trireme::models::GptOptions, trireme::models::GptNeoXOptions,
                               trireme::models::BertOptions>;

// The options of --model, or of --init if that is not given. A folder's model_type in config.json selects the kind; a model by
// name has the vocabulary of the tokenizer, or bytes.
LmOptions model_options(const LmRecipe& recipe, const std::optional<trireme::tokenizers::Tokenizer>& tokenizer);

// LmModel<P, D, Options> is the model for these options.
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
