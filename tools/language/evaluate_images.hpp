#pragma once

#include <string>

#include "evaluate.hpp"
#include "trireme/core/mean.hpp"

// A line of JSON. Leaves out top_5 if its weight is 0.
std::string line_of_images(const trireme::Mean& right, const trireme::Mean& top_5, const trireme::Mean& loss);

// Measures a vision transformer on labelled images. Each rank takes its share of them.
template <typename P, typename D>
void evaluate_images(const trireme::Group& world, const EvaluateProgram& program, const trireme::Location& path,
                     std::optional<std::int64_t> step);
