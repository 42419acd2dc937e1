#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "trireme/nn/weights/weights_format.hpp"

namespace trireme::models {

// Names of the parts of an nn::TransformerEncoderLayer in files of transformers; linear1 and linear2 are intermediate.dense and
// output.dense in all of them.
struct EncoderNames {
  std::string_view query_key_value;  // before "query", "key" and "value"
  std::string_view out_proj;
  std::string_view norm1;
  std::string_view norm2;
};

// The tensors of a block's parameter, whose name begins with `list` and a number; empty for other parameters.
std::vector<nn::StoredRows> encoder_parts(const std::string& parameter, std::string_view list, const EncoderNames& names,
                                          std::int64_t width);

}  // namespace trireme::models
