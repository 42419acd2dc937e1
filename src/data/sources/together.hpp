#pragma once

#include "trireme/core/collectives.hpp"

namespace trireme::data {

// Collectives::agree() where there are several ranks. Null: this one is alone.
void together(const Collectives* ranks, const char* name, const auto& action) {
  if (ranks == nullptr) {
    action();
  } else {
    ranks->agree(action, name);
  }
}

}  // namespace trireme::data
