#pragma once

namespace trireme::ops {

// Where dy of a batch norm counts: with ReLU where the result was above 0, which y says or the normalized x.
enum class Counts { everywhere, where_y, where_x };

}  // namespace trireme::ops
