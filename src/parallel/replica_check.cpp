#include "parallel/replica_check.hpp"

#include <fmt/format.h>

#include <string>
#include <utility>
#include <vector>

#include "parallel/planes.hpp"
#include "trireme/comm/base/require_same.hpp"
#include "trireme/core/digest.hpp"
#include "trireme/core/error.hpp"

namespace trireme::parallel {
namespace {

using Entries = std::vector<std::pair<std::string, std::string>>;

std::string digest_of(const std::string& name, const FlatStore& store, const std::shared_ptr<device::Storage>& plane,
                      const Range& range) {
  return with_elements_on_host(store, plane, range,
                               [&](auto values) { return fmt::format("values with digest {:016x}", digest(name, values)); });
}

enum class Comparison { whole, parts };

std::string description_of(FlatStore& store, int index, Comparison comparison) {
  const std::string computed =
      store.compute_dtype() == store.dtype() ? "" : fmt::format(" computed in {}", name_of(store.compute_dtype()));
  const ParameterInfo& parameter = store.parameter(index);
  const bool part = comparison == Comparison::parts && parameter.placement.split();
  const Shape& shape = part ? parameter.placement.shape : parameter.shape;
  return fmt::format(
      "{}{} {}{}, {}", name_of(store.dtype()), computed, shape.str(), parameter.trainable ? "" : " frozen",
      part ? fmt::format("dim {} divided", parameter.placement.dim)
           : digest_of(parameter.name, store, store.value_plane(), {parameter.offset, parameter.offset + parameter.numel}));
}

Entries parameters_of(FlatStore& store, Comparison comparison) {
  Entries entries;
  for (int index = 0; index < store.num_parameters(); ++index) {
    entries.emplace_back(store.parameter(index).name, description_of(store, index, comparison));
  }
  return entries;
}

Entries buffers_of(FlatStore& store) {
  BufferPlane& buffers = store.buffers();
  Entries entries;
  for (int index = 0; index < buffers.size(); ++index) {
    const BufferInfo& buffer = buffers.info(index);
    entries.emplace_back(buffer.name, fmt::format("{} {}, {}", name_of(store.dtype()), buffer.shape.str(),
                                                  digest_of(buffer.name, store, buffers.plane(),
                                                            {buffer.offset, buffer.offset + buffer.shape.numel()})));
  }
  return entries;
}

void compare(FlatStore& store, const Group& group, Comparison comparison) {
  if (group.size() == 1) return;
  require_same(group, "parameter", parameters_of(store, comparison));
  require_same(group, "buffer", buffers_of(store));
}

}  // namespace

void require_same_replicas(FlatStore& store, const Group& group) { compare(store, group, Comparison::whole); }

void require_matching_parts(FlatStore& store, const Group& group) { compare(store, group, Comparison::parts); }

void require_same_ties(FlatStore& store, const Group& pipeline) {
  if (pipeline.size() == 1) return;
  std::string own;
  for (int index = 0; index < store.num_parameters(); ++index) {
    const ParameterInfo& parameter = store.parameter(index);
    if (parameter.tied != nullptr) own = fmt::format("{}, {}", parameter.name, description_of(store, index, Comparison::whole));
  }
  const std::vector<std::string> all = pipeline.gather_texts(own, "tied parameters");
  int first = -1;  // rank that holds one
  for (int rank = 0; rank < pipeline.size(); ++rank) {
    const std::string& text = all[static_cast<std::size_t>(rank)];
    if (text.empty()) continue;
    if (first < 0) first = rank;
    const std::string& wanted = all[static_cast<std::size_t>(first)];
    if (text == wanted) continue;
    throw Error({.code = ErrorCode::rank_mismatch,
                 .message = fmt::format("rank {} of the pipeline holds the tied parameter {}, and rank {} {}", rank, text,
                                        first, wanted),
                 .rank = rank,
                 .operation = "compare tied parameters",
                 .hint = "initialize all stages with one seed, or load the same weights into all; freeze both copies or none"});
  }
}

}  // namespace trireme::parallel
