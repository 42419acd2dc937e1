#include "trireme/models/gpt2_safetensors.hpp"

#include <algorithm>

#include "models/weights_format.hpp"

namespace trireme::models {
namespace {

bool ends_with_any(std::string_view name, std::initializer_list<std::string_view> endings) {
  return std::any_of(endings.begin(), endings.end(), [name](std::string_view ending) { return name.ends_with(ending); });
}

// Tensors that files hold beside the parameters.
bool passed_over(std::string_view name) {
  return name == "lm_head.weight" || ends_with_any(name, {".attn.bias", ".attn.masked_bias"});
}

constexpr WeightsFormat gpt2{
    .stored_transposed = stored_transposed, .passed_over = passed_over, .optional_prefix = "transformer."};

}  // namespace

bool stored_transposed(std::string_view parameter) {
  return ends_with_any(parameter, {".c_attn.weight", ".c_proj.weight", ".c_fc.weight"});
}

template <typename P, typename D>
void load_gpt2(Gpt<P, D>& model, const std::string& path) {
  load_weights<typename P::Master>({{.prefix = "", .store = model.store()}}, path, gpt2);
}

template <typename P, typename D>
void save_gpt2(const Gpt<P, D>& model, const std::string& path) {
  save_weights<typename P::Master>({{.prefix = "", .store = model.store()}}, path, gpt2);
}

#define TRIREME_INSTANTIATE(P)                               \
  template void load_gpt2(Gpt<P, Cpu>&, const std::string&); \
  template void save_gpt2(const Gpt<P, Cpu>&, const std::string&);
TRIREME_INSTANTIATE(Float32)
TRIREME_INSTANTIATE(Float64)
TRIREME_INSTANTIATE(MixedBfloat16)
TRIREME_INSTANTIATE(MixedFloat16)
#undef TRIREME_INSTANTIATE

}  // namespace trireme::models
