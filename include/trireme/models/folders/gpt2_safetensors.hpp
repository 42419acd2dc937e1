#pragma once

#include <string>
#include <string_view>

#include "trireme/core/export.hpp"
#include "trireme/models/architectures/gpt.hpp"

// Exchange with Hugging Face's GPT2LMHeadModel: its names, and its Conv1D layout [in, out] for the weights of c_attn,
// c_proj and c_fc.
namespace trireme TRIREME_EXPORT {
namespace models {

// Whether Hugging Face stores this parameter transposed.
bool stored_transposed(std::string_view parameter);

// The sizes of the model in such a file, all but the heads, of which the file does not tell: 1. A tensor that is missing or has
// another shape or dtype is an Error that names it.
GptOptions gpt2_options(const std::string& path);

// Fills a Gpt. The names may lack "transformer."; attention masks ("attn.bias", "attn.masked_bias") and a tied
// "lm_head.weight" are passed over. A missing or unknown tensor or another shape is an Error that names it.
void load_gpt2(Model& model, const std::string& path);
template <typename P, typename D>
void load_gpt2(Gpt<P, D>& model, const std::string& path) {
  load_gpt2(model.model(), path);
}

// Writes a file that transformers reads: float32, metadata {"format": "pt"}.
void save_gpt2(Model& model, const std::string& path);
template <typename P, typename D>
void save_gpt2(const Gpt<P, D>& model, const std::string& path) {
  save_gpt2(model.model(), path);
}

}  // namespace models
}  // namespace trireme
