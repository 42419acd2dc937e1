#include "parallel/reduction/used_parameters.hpp"

namespace trireme::parallel {

void UsedParameters::note_all_with_gradient() {
  for (int index = 0; index < replicas_.store.num_parameters(); ++index) {
    if (replicas_.store.has_gradient(index)) note(index);
  }
}

// The numbers are first one for each parameter of all stages, then one for each tied parameter.
void UsedParameters::add_to(SummaryFields& fields, StepSummary& summary) const {
  fields.add({.size = replicas_.summary.num_parameters() + replicas_.tied.size(),
              .write =
                  [this](std::span<double> own) {
                    const std::span<double> here = own.subspan(replicas_.summary.first_parameter(), used_.size());
                    for (std::size_t index = 0; index < used_.size(); ++index) here[index] = used_[index] ? 1 : 0;
                    const std::span<double> of_tied = own.subspan(replicas_.summary.num_parameters());
                    for (std::size_t tied = 0; tied < of_tied.size(); ++tied) {
                      const int parameter = replicas_.tied[tied].parameter;
                      of_tied[tied] = parameter >= 0 && used_[static_cast<std::size_t>(parameter)] ? 1 : 0;
                    }
                  },
              .read =
                  [this, &summary](std::span<const double> ranks) {
                    summary.used.clear();
                    for (const double by : ranks.subspan(replicas_.summary.first_parameter(), used_.size())) {
                      summary.used.push_back(by > 0);
                    }
                    const std::span<const double> of_tied = ranks.subspan(replicas_.summary.num_parameters());
                    for (std::size_t tied = 0; tied < of_tied.size(); ++tied) {
                      const int parameter = replicas_.tied[tied].parameter;
                      if (parameter >= 0) summary.used[static_cast<std::size_t>(parameter)] = of_tied[tied] > 0;
                    }
                  }});
}

}  // namespace trireme::parallel
