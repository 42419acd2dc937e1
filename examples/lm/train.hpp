#pragma once

#include "recipe.hpp"
#include "trireme/trainer/run.hpp"

// P: Float32, MixedBfloat16, MixedFloat16; D: where the model computes.
template <typename P, typename D>
void train(trireme::trainer::Run& run, const LmRecipe& recipe);
