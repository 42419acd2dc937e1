#pragma once

namespace trireme::ops {

// Where dy of a batch norm counts: with ReLU where the result was above 0. where_y reads it, where_x computes it again from x.
enum class Counts { everywhere, where_y, where_x };

}  // namespace trireme::ops
