#pragma once

#include "trireme/ops/update/adadelta.hpp"
#include "trireme/ops/update/adafactor.hpp"
#include "trireme/ops/update/adagrad.hpp"
#include "trireme/ops/update/adam.hpp"
#include "trireme/ops/update/clip.hpp"
#include "trireme/ops/update/lamb.hpp"
#include "trireme/ops/update/lars.hpp"
#include "trireme/ops/update/lion.hpp"
#include "trireme/ops/update/lookahead.hpp"
#include "trireme/ops/update/move_average.hpp"
#include "trireme/ops/update/muon.hpp"
#include "trireme/ops/update/nadam.hpp"
#include "trireme/ops/update/radam.hpp"
#include "trireme/ops/update/rmsprop.hpp"
#include "trireme/ops/update/scaled_sum.hpp"
#include "trireme/ops/update/schedule_free_adamw.hpp"
#include "trireme/ops/update/sgd.hpp"

// Each entry X(name, Name, ...) is an optimizer. Its formula is ops::NameUpdate, its class is optim::Name with
// optim::NameOptions, and optim::make_optimizer knows the optimizer as "name". The passes on every device, their
// instantiations and the names are generated from this list.
#define TRIREME_EACH_OPTIMIZER(X, ...) \
  X(sgd, Sgd, __VA_ARGS__)             \
  X(adam, Adam, __VA_ARGS__)           \
  X(lamb, Lamb, __VA_ARGS__)           \
  X(lars, Lars, __VA_ARGS__)           \
  X(rmsprop, Rmsprop, __VA_ARGS__)     \
  X(adagrad, Adagrad, __VA_ARGS__)     \
  X(lion, Lion, __VA_ARGS__)           \
  X(nadam, Nadam, __VA_ARGS__)         \
  X(radam, Radam, __VA_ARGS__)         \
  X(adadelta, Adadelta, __VA_ARGS__)   \
  X(muon, Muon, __VA_ARGS__)           \
  X(adafactor, Adafactor, __VA_ARGS__)

// All formulas: the formulas above, the formula of ScheduleFreeAdamW, which make_optimizer does not know, and formulas of
// other passes.
#define TRIREME_EACH_FORMULA(X, ...)                     \
  TRIREME_EACH_OPTIMIZER(X, __VA_ARGS__)                 \
  X(schedule_free_adamw, ScheduleFreeAdamW, __VA_ARGS__) \
  X(clip, Clip, __VA_ARGS__)                             \
  X(move_average, Average, __VA_ARGS__)                  \
  X(lookahead, Lookahead, __VA_ARGS__)                   \
  X(scaled_sum, ScaledSum, __VA_ARGS__)                  \
  X(muon_momentum, MuonMomentum, __VA_ARGS__)            \
  X(unit_norm, UnitNorm, __VA_ARGS__)                    \
  X(adafactor_gradient, AdafactorGradient, __VA_ARGS__)  \
  X(adafactor_square, AdafactorSquare, __VA_ARGS__)      \
  X(adafactor_mean, AdafactorMean, __VA_ARGS__)          \
  X(adafactor_quotient, AdafactorQuotient, __VA_ARGS__)  \
  X(adafactor_direction, AdafactorDirection, __VA_ARGS__)
