#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "trireme/nn/weights/weights_format.hpp"

namespace trireme::models {

// What files of transformers call the parts of an nn::TransformerEncoderLayer; linear1 and linear2 are intermediate.dense and
// output.dense in all of them.
struct EncoderNames {
  std::string_view query_key_value;  // before "query", "key" and "value"
  std::string_view out_proj;
  std::string_view norm1;
  std::string_view norm2;
};

// The tensors of a parameter of a block, whose name begins with `list` and a number; of another parameter nothing.
std::vector<nn::StoredRows> encoder_parts(const std::string& parameter, std::string_view list, const EncoderNames& names,
                                          std::int64_t width);

}  // namespace trireme::models
