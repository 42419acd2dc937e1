#include "models/folders/encoder_format.hpp"

#include <fmt/format.h>

#include <array>
#include <utility>

namespace trireme::models {

std::vector<nn::StoredRows> encoder_parts(const std::string& parameter, std::string_view list, const EncoderNames& names,
                                          std::int64_t width) {
  if (!parameter.starts_with(list)) return {};
  const std::size_t dot = parameter.find('.', list.size());
  const std::string block = parameter.substr(0, dot + 1);
  const std::string_view part = std::string_view(parameter).substr(dot + 1);
  constexpr std::string_view packed = "self_attn.in_proj_";  // weight or bias
  if (part.starts_with(packed)) {
    std::vector<nn::StoredRows> rows;
    for (const char* of : {"query", "key", "value"}) {
      rows.push_back(
          {.name = fmt::format("{}{}{}.{}", block, names.query_key_value, of, part.substr(packed.size())), .count = width});
    }
    return rows;
  }
  const std::array<std::pair<std::string_view, std::string_view>, 5> modules{{{"self_attn.out_proj", names.out_proj},
                                                                              {"linear1", "intermediate.dense"},
                                                                              {"linear2", "output.dense"},
                                                                              {"norm1", names.norm1},
                                                                              {"norm2", names.norm2}}};
  for (const auto& [module, in_file] : modules) {
    if (part.starts_with(module)) return {{.name = fmt::format("{}{}{}", block, in_file, part.substr(module.size()))}};
  }
  return {};
}

}  // namespace trireme::models
