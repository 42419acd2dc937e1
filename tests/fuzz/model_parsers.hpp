#pragma once

#include <span>

#include "fuzz/parsers.hpp"

namespace trireme::fuzz {

// Of a model's folder, and of what it learns from.
std::span<const Parser> model_parsers();

}  // namespace trireme::fuzz
