#include "trireme/core/error.hpp"
#include "trireme/core/parse_number.hpp"
#include "trireme/parallel/hooks/compression.hpp"

namespace trireme::parallel {

HookFactory parse_compression(std::string_view text, std::int64_t warmup_steps) {
  const std::size_t colon = text.find(':');
  const std::string_view name = text.substr(0, colon);
  const bool plain = colon == std::string_view::npos;
  const std::string_view argument = plain ? std::string_view() : text.substr(colon + 1);
  if (plain && name == "none") return nullptr;
  if (plain && name == "fp16") return float16_hook();
  if (plain && name == "bf16") return bfloat16_hook();
  if (plain && name == "int8") return int8_hook();
  const auto ratio = parse_number<double>(argument);
  if (name == "topk" && ratio) return top_k_hook({.ratio = *ratio, .warmup_steps = warmup_steps});
  const auto rank = parse_number<int>(argument);
  if (name == "powersgd" && rank) return power_sgd_hook({.rank = *rank});
  throw Error({.code = ErrorCode::invalid_argument,
               .message = "there is no compression \"" + std::string(text) + "\"",
               .hint = "none, fp16, bf16, int8, topk:RATIO or powersgd:RANK, as in topk:0.01 and powersgd:4"});
}

}  // namespace trireme::parallel
