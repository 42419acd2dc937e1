#include "parallel/replica_check.hpp"

#include <fmt/format.h>

#include <string>
#include <utility>
#include <vector>

#include "trireme/core/digest.hpp"
#include "trireme/parallel/settings.hpp"

namespace trireme::parallel {
namespace {

using Entries = std::vector<std::pair<std::string, std::string>>;

template <typename T>
std::string digest_of(const std::string& name, const Tensor<T>& values) {
  return fmt::format("values with digest {:016x}", digest<T>(name, std::span<const T>(values.span())));
}

template <typename T>
Entries parameters_of(FlatStore& store) {
  const std::string computed =
      store.compute_dtype() == store.dtype() ? "" : fmt::format(" computed in {}", name_of(store.compute_dtype()));
  Entries entries;
  for (int index = 0; index < store.num_parameters(); ++index) {
    const ParameterInfo& parameter = store.parameter(index);
    entries.emplace_back(parameter.name,
                         fmt::format("{}{} {}{}, {}", name_of(store.dtype()), computed, parameter.shape.str(),
                                     parameter.trainable ? "" : " frozen", digest_of(parameter.name, store.values<T>(index))));
  }
  return entries;
}

template <typename T>
Entries buffers_of(FlatStore& store) {
  BufferPlane& buffers = store.buffers();
  Entries entries;
  for (int index = 0; index < buffers.size(); ++index) {
    const BufferInfo& buffer = buffers.info(index);
    entries.emplace_back(buffer.name, fmt::format("{} {}, {}", name_of(store.dtype()), buffer.shape.str(),
                                                  digest_of(buffer.name, buffers.values<T>(index))));
  }
  return entries;
}

template <typename T>
void require_same_planes(FlatStore& store, const Group& group) {
  require_same(group, "parameter", parameters_of<T>(store));
  require_same(group, "buffer", buffers_of<T>(store));
}

}  // namespace

void require_same_replicas(FlatStore& store, const Group& group) {
  if (group.size() == 1) return;
  store.dtype() == DType::float64 ? require_same_planes<double>(store, group) : require_same_planes<float>(store, group);
}

}  // namespace trireme::parallel
