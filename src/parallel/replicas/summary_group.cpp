#include "parallel/replicas/summary_group.hpp"

#include <algorithm>
#include <array>
#include <string>

#include "parallel/step/planes.hpp"

namespace trireme::parallel {
namespace {

bool holds_whole_model(const ProcessMesh& mesh) {
  return mesh.pipeline().size() == 1 && mesh.tensor().size() == 1 && mesh.expert().size() == 1;
}

}  // namespace

SummaryGroup::SummaryGroup(Model& model, const ProcessMesh& mesh)
    : store_(model.store()),
      group_(holds_whole_model(mesh) ? mesh.data() : mesh.world().split(0, mesh.world().rank(), "step summary")),
      whole_model_(holds_whole_model(mesh)),
      data_rank_(mesh.data().rank()),
      tensor_rank_(mesh.tensor().rank()),
      expert_rank_(mesh.expert().rank()),
      pipeline_rank_(mesh.pipeline().rank()),
      num_loss_ranks_(mesh.batch().size() * mesh.tensor().size()) {
  const Axis& tensor = model.context().tensor;
  const int held_between = tensor == nullptr ? 1 : tensor->size();
  require(held_between == mesh.tensor().size(),
          "the model is divided between {} ranks, the tensor axis of the mesh has {}: give both the same mesh, the model by "
          "parallel::model_context(mesh)",
          held_between, mesh.tensor().size());
  const Axis& expert = model.context().expert;
  const int experts_between = expert == nullptr ? 1 : expert->size();
  require(experts_between == mesh.expert().size(),
          "the experts of the model are divided between {} ranks, the expert axis of the mesh has {}: give both the same mesh, "
          "the model by parallel::model_context(mesh)",
          experts_between, mesh.expert().size());
  const Axis& pipeline = model.context().pipeline;
  const int staged_between = pipeline == nullptr ? 1 : pipeline->size();
  require(staged_between == mesh.pipeline().size() && (pipeline == nullptr || store_.is_distributed()),
          "the stages of the model lie on {} rank{}, the pipeline axis of the mesh has {}: make it a list of layers, an "
          "nn::Staged, with the context parallel::model_context(mesh)",
          store_.is_distributed() ? staged_between : 1, staged_between == 1 || !store_.is_distributed() ? "" : "s",
          mesh.pipeline().size());
  const std::vector<std::string> of_stages =
      mesh.pipeline().gather_texts(std::to_string(store_.num_parameters()), "parameters");
  for (std::size_t stage = 0; stage < of_stages.size(); ++stage) {
    const std::size_t count = std::stoul(of_stages[stage]);
    num_parameters_ += count;
    if (stage < static_cast<std::size_t>(mesh.pipeline().rank())) first_parameter_ += count;
  }
  // Gaps between parameters hold zeros and are counted with the parameter before them.
  const auto layout = store_.layout();
  for (std::size_t place = 0; place < layout.size(); ++place) {
    const ParameterInfo& parameter = store_.parameter(layout[place]);
    if (!parameter.trainable) break;  // frozen parameters come last
    const bool here = (tensor_rank_ == 0 && expert_rank_ == 0) || parameter.placement.split();
    if (!counts(parameter)) continue;
    const bool last = place + 1 == layout.size() || !store_.parameter(layout[place + 1]).trainable;
    const Range range{parameter.offset, last ? store_.trainable_numel() : store_.parameter(layout[place + 1]).offset};
    std::vector<Range>& ranges = here ? counted_ : counted_elsewhere_;
    if (!ranges.empty() && ranges.back().end == range.begin) {
      ranges.back().end = range.end;
    } else {
      ranges.push_back(range);
    }
  }
}

double SummaryGroup::sum_of_squares(const Range& range) const {
  // Gradients that another rank counts add 0 here, or nan if they are inf or nan on this rank.
  return sum_of_squares(range, counted_) + 0 * sum_of_squares(range, counted_elsewhere_);
}

double SummaryGroup::sum_of_squares(const Range& range, const std::vector<Range>& of) const {
  double sum = 0;
  for (const Range& each : of) {
    const Range part{std::max(range.begin, each.begin), std::min(range.end, each.end)};
    if (part.count() <= 0) continue;
    sum += store_.device().sum_of_squares(store_.gradient_plane(), store_.dtype(), part);
  }
  return sum;
}

void SummaryGroup::add_squares(const Range& range, ExactSum& sum) const {
  add_squares(range, sum, 1, counted_);
  add_squares(range, sum, 0, counted_elsewhere_);
}

// Parameters begin and collectives divide at multiples of 8 elements of the store; elements after the last count as 0.
void SummaryGroup::add_squares(const Range& range, ExactSum& sum, double factor, const std::vector<Range>& of) const {
  for (const Range& each : of) {
    const Range part{std::max(range.begin, each.begin), std::min(range.end, each.end)};
    if (part.count() <= 0) continue;
    with_elements_on_host(store_, store_.gradient_plane(), part, [&](auto gradients) {
      for (std::size_t first = 0; first < gradients.size(); first += 8) {
        std::array<double, 8> squares{};
        const std::size_t count = std::min<std::size_t>(8, gradients.size() - first);
        for (std::size_t index = 0; index < count; ++index) {
          const auto gradient = static_cast<double>(gradients[first + index]);
          squares[index] = gradient * gradient;
        }
        sum.add(factor * (((squares[0] + squares[1]) + (squares[2] + squares[3])) +
                          ((squares[4] + squares[5]) + (squares[6] + squares[7]))));
      }
    });
  }
}

}  // namespace trireme::parallel
