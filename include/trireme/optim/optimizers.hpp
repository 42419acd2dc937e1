#pragma once

// Includes every optimizer of ops/update/each_optimizer.hpp, AdamW and AdamW8bit.
#include "trireme/optim/adadelta.hpp"
#include "trireme/optim/adafactor.hpp"
#include "trireme/optim/adagrad.hpp"
#include "trireme/optim/adam.hpp"
#include "trireme/optim/adamw.hpp"
#include "trireme/optim/adamw_8bit.hpp"
#include "trireme/optim/lamb.hpp"
#include "trireme/optim/lars.hpp"
#include "trireme/optim/lion.hpp"
#include "trireme/optim/muon.hpp"
#include "trireme/optim/nadam.hpp"
#include "trireme/optim/radam.hpp"
#include "trireme/optim/rmsprop.hpp"
#include "trireme/optim/sgd.hpp"
