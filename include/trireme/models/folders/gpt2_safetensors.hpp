#pragma once

#include <string>
#include <string_view>

#include "trireme/core/export.hpp"
#include "trireme/files/location.hpp"
#include "trireme/models/architectures/gpt.hpp"
#include "trireme/models/folders/load_pretrained.hpp"

// Exchanges weights with Hugging Face's GPT2LMHeadModel. Files have the names of GPT2LMHeadModel, and the layout [in, out] of
// its Conv1D for the weights of c_attn, c_proj and c_fc.
namespace trireme TRIREME_EXPORT {
namespace models {

// Whether Hugging Face stores this parameter transposed.
bool stored_transposed(std::string_view parameter);

// The sizes of the model in such a file. The file does not say the number of heads, which is set to 1. A tensor that is missing
// or has another shape or dtype is an Error that names it.
GptOptions gpt2_options(const Location& path);

// See load_pretrained.hpp. The names may lack "transformer."; attention masks ("attn.bias", "attn.masked_bias") and a tied
// "lm_head.weight" are ignored.
nn::LoadedWeights load_pretrained(Model& model, const GptOptions& options, const Location& path,
                                  const nn::LoadOptions& load = {});

// Writes one file that Hugging Face transformers reads: float32, metadata {"format": "pt"}. save_pretrained() writes a folder.
void save_gpt2(Model& model, const Location& path);
template <typename P, typename D>
void save_gpt2(const Gpt<P, D>& model, const Location& path) {
  save_gpt2(model.model(), path);
}

}  // namespace models
}  // namespace trireme
