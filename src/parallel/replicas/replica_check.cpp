#include "parallel/replicas/replica_check.hpp"

#include <fmt/format.h>

#include <string>
#include <utility>
#include <vector>

#include "parallel/step/planes.hpp"
#include "trireme/comm/base/require_same.hpp"
#include "trireme/core/error.hpp"
#include "trireme/files/digest.hpp"

namespace trireme::parallel {
namespace {

using Entries = std::vector<Setting>;

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
    if (buffer.options.reduction == BufferReduction::none) continue;
    entries.emplace_back(buffer.name, fmt::format("{} {}, {}", name_of(store.dtype()), buffer.shape.str(),
                                                  digest_of(buffer.name, store, buffers.plane(),
                                                            {buffer.offset, buffer.offset + buffer.shape.numel()})));
  }
  return entries;
}

// Checks that each row of the batch lies on one replica: checkpoints join the buffers that ranks keep for their rows.
void require_own_rows(const BufferPlane& buffers, const Group& replicas) {
  for (int index = 0; index < buffers.size(); ++index) {
    const auto& rows = buffers.info(index).options.rows;
    if (!rows) continue;
    const std::int64_t share = rows->batch_size / replicas.size();
    require(
        share * replicas.size() == rows->batch_size && rows->own.begin == replicas.rank() * share && rows->own.count() == share,
        "buffer {} holds rows {} to {} of a batch of {}, but this is replica {} of {}: make the model's context by "
        "parallel::model_context(mesh, {{.batch_size = {}}})",
        buffers.info(index).name, rows->own.begin, rows->own.end, rows->batch_size, replicas.rank(), replicas.size(),
        rows->batch_size);
  }
}

Entries rows_of(const BufferPlane& buffers) {
  Entries entries;
  for (int index = 0; index < buffers.size(); ++index) {
    const BufferInfo& buffer = buffers.info(index);
    if (const auto& rows = buffer.options.rows) {
      entries.emplace_back(buffer.name, fmt::format("{} to {} of {}", rows->own.begin, rows->own.end, rows->batch_size));
    }
  }
  return entries;
}

void compare(FlatStore& store, const Group& group, Comparison comparison) {
  if (group.size() == 1) return;
  require_same(group, "parameter", parameters_of(store, comparison));
  require_same(group, "buffer", buffers_of(store));
}

}  // namespace

void require_same_replicas(FlatStore& store, const Group& group) {
  compare(store, group, Comparison::whole);
  group.agree([&] { require_own_rows(store.buffers(), group); }, "rows of the batch");
}

void require_matching_parts(FlatStore& store, const Group& group) {
  compare(store, group, Comparison::parts);
  if (group.size() > 1) require_same(group, "rows of the batch in", rows_of(store.buffers()));
}

void require_same_ties(FlatStore& store, const Group& pipeline) {
  if (pipeline.size() == 1) return;
  for (const auto& [name, ranks, index] : store.tied()) {
    const std::string own = index < 0 ? "" : description_of(store, index, Comparison::whole);
    const std::vector<std::string> all = pipeline.gather_texts(own, "tied parameters");
    const std::string& wanted = all[static_cast<std::size_t>(ranks.front())];
    for (const int rank : ranks) {
      const std::string& text = all[static_cast<std::size_t>(rank)];
      if (text == wanted) continue;
      throw Error(
          {.code = ErrorCode::rank_mismatch,
           .message = fmt::format("rank {} of the pipeline holds the tied parameter {}, {}, and rank {} {}", rank, name, text,
                                  ranks.front(), wanted),
           .rank = rank,
           .operation = "compare tied parameters",
           .name = name,
           .hint = "initialize all stages with one seed, or load the same weights into all; freeze all copies or none"});
    }
  }
}

}  // namespace trireme::parallel
