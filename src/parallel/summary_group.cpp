#include "parallel/summary_group.hpp"

#include <algorithm>
#include <string>

#include "parallel/planes.hpp"
#include "trireme/ops/reduce.hpp"

namespace trireme::parallel {
namespace {

bool holds_whole_model(const ProcessMesh& mesh) { return mesh.pipeline().size() == 1 && mesh.tensor().size() == 1; }

}  // namespace

SummaryGroup::SummaryGroup(FlatStore& store, const ProcessMesh& mesh)
    : store_(store),
      group_(holds_whole_model(mesh) ? mesh.data() : mesh.world().split(0, mesh.world().rank(), "step summary")),
      whole_model_(holds_whole_model(mesh)),
      data_rank_(mesh.data().rank()),
      tensor_rank_(mesh.tensor().rank()),
      num_loss_ranks_(mesh.data().size() * mesh.tensor().size()) {
  const std::vector<std::string> counts = mesh.pipeline().gather_texts(std::to_string(store.num_parameters()), "parameters");
  for (std::size_t stage = 0; stage < counts.size(); ++stage) {
    const std::size_t count = std::stoul(counts[stage]);
    num_parameters_ += count;
    if (stage < static_cast<std::size_t>(mesh.pipeline().rank())) first_parameter_ += count;
  }
  if (counts_loss()) {
    counted_.push_back({0, store.trainable_numel()});
    return;
  }
  for (const int index : store.layout()) {
    const ParameterInfo& parameter = store.parameter(index);
    if (parameter.trainable && parameter.placement.split()) {
      counted_.push_back({parameter.offset, parameter.offset + parameter.numel});
    }
  }
}

double SummaryGroup::sum_of_squares(const Range& range) const {
  double sum = 0;
  for (const Range& counted : counted_) {
    const Range part{std::max(range.begin, counted.begin), std::min(range.end, counted.end)};
    if (part.count() <= 0) continue;
    sum += with_gradients(store_, part, [](auto gradients) { return ops::sum_of_squares(gradients.data(), gradients.size()); });
  }
  return sum;
}

}  // namespace trireme::parallel
