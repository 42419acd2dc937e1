#pragma once

#include <map>
#include <optional>
#include <string_view>

#include "ops/base/cudnn_graph.hpp"
#include "trireme/core/error.hpp"
#include "trireme/core/log.hpp"
#include "trireme/device/graph.hpp"

namespace trireme::ops {

// The plans that a thread has made for graphs of one kind.
template <typename Graph>
class CudnnPlanTable {
 public:
  using Make = CudnnPlan (*)(const Cudnn& library, const Graph& graph, const CudnnDevice& device);

  // Opens cuDNN before the plans exist, so that it is closed after them. `what` names the operation in messages: "attention".
  CudnnPlanTable(std::string_view what, Make make)
      : what_(what), make_(make), library_(made_or_nothing([] { return &cudnn(); }).value_or(nullptr)) {}

  // Returns null if cuDNN or a plan is missing, and logs this once. The plan is valid until the next call.
  const CudnnPlan* find(const Graph& graph) {
    if (library_ == nullptr) return nullptr;
    auto place = plans_.find(graph);
    if (place == plans_.end()) {
      device::require_not_capturing("making a plan of cuDNN's");
      if (plans_.size() >= most_plans) std::erase_if(plans_, [](const auto& entry) { return !entry.second.recorded; });
      const auto plan = [&] { return make_(*library_, graph, {.handle = library_->handle()}); };
      place = plans_.emplace(graph, Known{made_or_nothing(plan)}).first;
    }
    Known& known = place->second;
    known.recorded = known.recorded || device::is_capturing();
    return known.plan ? &*known.plan : nullptr;
  }

 private:
  struct Known {
    std::optional<CudnnPlan> plan;
    bool recorded = false;  // in a CUDA graph, which launches the plan's kernels
  };

  static constexpr std::size_t most_plans = 1024;  // limits the memory if shapes change all the time

  // Returns the result of `make`, or logs a message and returns nothing if something is not available.
  template <typename Thing>
  auto made_or_nothing(const Thing& make) const -> std::optional<decltype(make())> {
    try {
      return make();
    } catch (const Error& error) {
      if (error.code() != ErrorCode::not_available) throw;
      log(Severity::warning, "{} runs without cuDNN, which is slower: {}", what_, error.what());
      return {};
    }
  }

  std::string_view what_;
  Make make_;
  Cudnn* library_;  // null if it is missing
  std::map<Graph, Known> plans_;
};

}  // namespace trireme::ops
