#pragma once

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "trireme/core/error.hpp"
#include "trireme/parallel/hooks/communication_hook.hpp"

namespace trireme::parallel {

// The tensors that a hook keeps from step to step under one name, one for each of some parameters.
class KeptTensors {
 public:
  explicit KeptTensors(std::string what) : what_(std::move(what)) {}

  Tensor<float>& add(const std::string& parameter, const Shape& shape) {
    const auto [entry, added] = tensors_.try_emplace(parameter, Tensor<float>::zeros(shape));
    require(added, "a communication hook that serves \"{}\" already was given to a second DataParallel; make one for each",
            parameter);
    return entry->second;
  }

  const Tensor<float>* find(const std::string& parameter) const {  // null if nothing is kept for it
    const auto entry = tensors_.find(parameter);
    return entry == tensors_.end() ? nullptr : &entry->second;
  }

  // Zeroes the tensor after a gradient overflowed, so that later steps do not get inf or nan from it. All ranks skip that step;
  // the tensors of other parameters keep its changes.
  void forget(const std::string& parameter) {
    if (const Tensor<float>* kept = find(parameter)) std::ranges::fill(kept->span(), 0.0F);
  }

  void list(std::vector<NamedTensor>& state) const {
    for (const auto& [parameter, values] : tensors_) state.push_back({parameter + "." + what_, values});
  }

 private:
  std::string what_;
  std::map<std::string, Tensor<float>> tensors_;
};

}  // namespace trireme::parallel
