#include <charconv>

#include "trireme/core/error.hpp"
#include "trireme/parallel/compression.hpp"

namespace trireme::parallel {
namespace {

template <typename T>
bool parse(std::string_view text, T& value) {
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), value);
  return failure == std::errc() && end == text.data() + text.size();
}

}  // namespace

std::shared_ptr<CommunicationHook> parse_compression(std::string_view text, std::int64_t warmup_steps) {
  const std::size_t colon = text.find(':');
  const std::string_view name = text.substr(0, colon);
  const bool plain = colon == std::string_view::npos;
  const std::string_view argument = plain ? std::string_view() : text.substr(colon + 1);
  if (plain && name == "none") return nullptr;
  if (plain && name == "fp16") return float16_hook();
  if (plain && name == "bf16") return bfloat16_hook();
  if (plain && name == "int8") return int8_hook();
  TopKOptions top_k{.warmup_steps = warmup_steps};
  if (name == "topk" && parse(argument, top_k.ratio)) return top_k_hook(top_k);
  PowerSgdOptions power_sgd;
  if (name == "powersgd" && parse(argument, power_sgd.rank)) return power_sgd_hook(power_sgd);
  throw Error({.code = ErrorCode::invalid_argument,
               .message = "there is no compression \"" + std::string(text) + "\"",
               .hint = "none, fp16, bf16, int8, topk:RATIO or powersgd:RANK, as in topk:0.01 and powersgd:4"});
}

}  // namespace trireme::parallel
