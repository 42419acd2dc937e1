#include "ops/cuda/attention_plans.hpp"

#include <cstdio>

#include "trireme/core/error.hpp"

namespace trireme::ops {
namespace {

// What `make` returns, or nothing, with a message, where it finds that something is missing.
template <typename Make>
auto made_or_nothing(const Make& make) -> std::optional<decltype(make())> {
  try {
    return make();
  } catch (const Error& error) {
    if (error.code() != ErrorCode::not_available) throw;
    fmt::print(stderr, "trireme: attention runs without cuDNN, which is slower: {}\n", error.what());
    return {};
  }
}

}  // namespace

// cuDNN is opened before the plans exist, so that it ends after them.
AttentionPlans::AttentionPlans() : library_(made_or_nothing([] { return &cudnn(); }).value_or(nullptr)) {}

const CudnnPlan* AttentionPlans::find(Table& table, decltype(&plan_attention_forward) make, const AttentionGraph& graph) const {
  if (library_ == nullptr) return nullptr;
  auto place = table.find(graph);
  if (place == table.end()) {
    const auto plan = [&] { return make(*library_, graph, {.handle = library_->handle()}); };
    place = table.emplace(graph, made_or_nothing(plan)).first;
  }
  return place->second ? &*place->second : nullptr;
}

AttentionPlans& attention_plans() {
  thread_local AttentionPlans plans;
  return plans;
}

}  // namespace trireme::ops
