#pragma once

#include <cstdint>

namespace trireme::ops {

struct GroupNormSizes {
  std::int64_t batch;
  std::int64_t rows;  // of a sample
  std::int64_t channels;
  std::int64_t groups;
};

}  // namespace trireme::ops
