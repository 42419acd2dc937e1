#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>
#include <tuple>
#include <vector>

#include "trireme/autograd/composed/gated.hpp"
#include "trireme/autograd/operations/experts.hpp"
#include "trireme/autograd/operations/pointwise.hpp"
#include "trireme/autograd/operations/search.hpp"
#include "trireme/core/export.hpp"
#include "trireme/nn/base/first_values.hpp"
#include "trireme/nn/layers/gated.hpp"

namespace trireme TRIREME_EXPORT {
namespace nn {

struct MixtureOfExpertsOptions {
  std::int64_t width = 0;
  std::int64_t count = 0;   // experts
  std::int64_t top_k = 2;   // experts that compute each token
  std::int64_t hidden = 0;  // features of each expert's MLP
  bool renormalise = true;  // the weights of a token's experts add up to 1; otherwise they are the router's probabilities
  // Above 0: an expert computes at most ceil(capacity_factor * top_k * time / count) tokens of a sequence. First choices come
  // before second choices; among equal choices, earlier tokens come before later tokens. A choice beyond the capacity is
  // dropped and adds nothing. 0: no limit.
  double capacity_factor = 0;
  double auxiliary_loss = 0;       // factor of the loss that balances experts
  double z_loss = 0;               // factor of the loss that keeps the router's logits small
  std::int64_t shared_hidden = 0;  // above 0: hidden features of a further MLP, which computes all tokens
  bool shared_gate = false;        // multiplies the further MLP's result by sigmoid(x shared_expert_gate^T), as in Qwen2-MoE
  std::optional<Initializer> weight_initializer = {};
};

// The MLPs of a mixture. Each parameter holds all experts, one after the other: gate_proj and up_proj [count * hidden, width],
// down_proj [count * width, hidden]. The ranks of a tensor axis divide the hidden features of each expert. The ranks of an
// expert axis divide the experts; tokens are sent to the ranks of their experts and back (Lepikhin et al. 2020, arXiv
// 2006.16668).
template <typename P, typename D = Cpu>
class Experts : public Module<P, D> {
 public:
  using T = typename P::Compute;
  using M = typename P::Master;

  Experts(const Module<P, D>& parent, std::string_view name, const MixtureOfExpertsOptions& options)
      : Module<P, D>(parent, name) {
    const auto [count, hidden, width] = std::tuple(options.count, options.hidden, options.width);
    Placement of_hidden{.shape = {count * hidden, width}};
    Placement of_width{.shape = {count * width, hidden}};
    if (const Collectives* ranks = this->context().expert.get()) {
      require(count % ranks->size() == 0,
              "{}: {} ranks of an expert axis can't divide {} experts; use a number that divides them", this->name(),
              ranks->size(), count);
      const Range own = even_part(count, *ranks);
      of_hidden.dim = of_width.dim = 0;
      of_hidden.ranges = {{own.begin * hidden, own.end * hidden}};
      of_width.ranges = {{own.begin * width, own.end * width}};
    } else if (const Collectives* axis = this->tensor_axis()) {
      const Range part = even_part(hidden, *axis);
      of_hidden.dim = 0;
      for (std::int64_t expert = 0; expert < count; ++expert) {
        of_hidden.ranges.push_back({expert * hidden + part.begin, expert * hidden + part.end});
      }
      of_width.dim = 1;
      of_width.ranges = {part};
    }
    gate_proj = this->add_parameter("gate_proj", of_hidden, options.weight_initializer.value_or(uniform_by_fan_in(width)));
    up_proj = this->add_parameter("up_proj", of_hidden, options.weight_initializer.value_or(uniform_by_fan_in(width)));
    down_proj = this->add_parameter("down_proj", of_width, options.weight_initializer.value_or(uniform_by_fan_in(hidden)));
  }

  // x[tokens, width], weights[tokens, choices] -> [tokens, width], or this rank's rows of the result in a sequence-parallel
  // model.
  Variable<T, D> forward(const Variable<T, D>& x, const Variable<M, D>& weights, const ExpertRows& rows) const {
    return this->named([&] {
      if (this->context().expert != nullptr) return forward_between_ranks(x, weights, rows);
      const Collectives* axis = this->tensor_axis();
      const auto entering = [axis](const auto& all) { return axis != nullptr ? sum_gradient(all, *axis) : all; };
      const Variable<T, D> of_rows = computed(take_expert_rows(entering(x), rows), rows);
      const Variable<T, D> y = combine_expert_rows(of_rows, entering(weights), rows);
      return axis != nullptr ? sum_parts(y, *axis, this->sequence_parallel()) : y;
    });
  }

  Parameter<T, D, M> gate_proj;
  Parameter<T, D, M> up_proj;
  Parameter<T, D, M> down_proj;

 private:
  Variable<T, D> computed(const Variable<T, D>& x, const ExpertRows& rows) const {
    const Variable<T, D> gate = expert_linear(x, gate_proj.variable(), rows);
    const Variable<T, D> features = swiglu(gate, expert_linear(x, up_proj.variable(), rows));
    return expert_linear(features, down_proj.variable(), rows);
  }

  // Rows are sent in the order of the experts, and received in the order of the ranks.
  Variable<T, D> forward_between_ranks(const Variable<T, D>& x, const Variable<M, D>& weights, const ExpertRows& rows) const {
    const Collectives& axis = *this->context().expert;
    const std::int64_t experts = rows->experts(), own = experts / axis.size();
    Tensor<std::int64_t, Cpu> counts = Tensor<std::int64_t, Cpu>::zeros({axis.size(), experts});
    for (std::int64_t expert = 0; expert < experts; ++expert) {
      const auto first = rows->first.begin() + expert;
      counts.at(axis.rank(), expert) = first[1] - first[0];
    }
    axis.all_reduce(counts.span(), ReduceOp::sum, "rows of experts").wait_on_host();
    RowExchange exchange;
    std::vector<std::int64_t> expert_of_row;
    for (std::int64_t rank = 0; rank < axis.size(); ++rank) {
      std::int64_t to = 0, from = 0;
      for (std::int64_t expert = 0; expert < own; ++expert) {
        const std::int64_t received = counts.at(rank, axis.rank() * own + expert);
        to += counts.at(axis.rank(), rank * own + expert);
        from += received;
        expert_of_row.insert(expert_of_row.end(), static_cast<std::size_t>(received), expert);
      }
      exchange.to.push_back(to);
      exchange.from.push_back(from);
    }
    const auto chosen = Tensor<std::int64_t, Cpu>::from({std::ssize(expert_of_row), 1}, expert_of_row);
    const auto here = std::make_shared<const ops::ExpertRows>(ops::expert_rows(chosen, {.experts = own}));
    const Variable<T, D> received = exchange_rows(take_expert_rows(x, rows), exchange, axis);
    const Variable<T, D> y = computed(take_expert_rows(received, here), here);
    const Variable<M, D> ones(Tensor<M, D>::full({here->tokens, 1}, M(1)));
    const RowExchange back{.to = exchange.from, .from = exchange.to};
    return combine_expert_rows(exchange_rows(combine_expert_rows(y, ones, here), back, axis), weights, rows);
  }
};

// A router sends each token to the top_k experts of highest probability; the result is the sum of these experts' outputs,
// weighted by the probabilities (Shazeer et al. 2017, arXiv 1701.06538; Jiang et al. 2024, arXiv 2401.04088). The router
// computes in the master type. Only for the CPU. Names are those of Mixtral and Qwen2-MoE in Hugging Face transformers.
//
// With a tape, forward() adds two losses to the loss of the step (add_loss()). Each loss is a mean over sequences, weighted by
// the sequences' numbers of targets:
// - count * sum over experts of (share of tokens that chose the expert) * (the expert's mean probability), over one sequence,
//   so that this loss does not depend on ranks or micro-batches (Fedus et al. 2021, arXiv 2101.03961);
// - the mean square of the logits' log-sum-exp (Zoph et al. 2022, arXiv 2202.08906).
template <typename P, typename D = Cpu>
class MixtureOfExperts : public Module<P, D> {
 public:
  using T = typename P::Compute;
  using M = typename P::Master;

  MixtureOfExperts(const Module<P, D>& parent, std::string_view name, const MixtureOfExpertsOptions& options)
      : Module<P, D>(parent, name),
        options_(checked(options)),
        gate(*this, "gate",
             {.in = options.width,
              .out = options.count,
              .bias = false,
              .adaptable = false,
              .weight_initializer = options.weight_initializer}),
        experts(*this, "experts", options) {
    if (options.shared_hidden == 0) return;
    shared_expert.emplace(*this, "shared_expert",
                          GatedMlpOptions{.width = options.width,
                                          .hidden = options.shared_hidden,
                                          .adaptable = false,
                                          .weight_initializer = options.weight_initializer});
    if (!options.shared_gate) return;
    shared_expert_gate.emplace(*this, "shared_expert_gate",
                               LinearOptions{.in = options.width,
                                             .out = 1,
                                             .bias = false,
                                             .adaptable = false,
                                             .weight_initializer = options.weight_initializer});
  }

  // x [batch, time, width], or this rank's rows of x -> the same shape. targets [batch, time] may be undefined. In the added
  // losses, the weight of a sequence is its number of targets that are not ignored. document_starts [batch, time] may be
  // undefined too; it says where each token's document starts in its sequence. If document_starts is given, the added losses
  // count each document as a sequence, but the capacity is still for `time` tokens.
  Variable<T, D> forward(const Variable<T, D>& x, std::int64_t time, const Tensor<std::int32_t, D>& targets = {},
                         const Tensor<std::int32_t, D>& document_starts = {}) const {
    return this->named([&] {
      const Variable<T, D> own = reshape(x, {-1, options_.width});
      const Variable<T, D> all = this->sequence_parallel() ? gather_rows(own, *this->tensor_axis()) : own;
      const std::int64_t tokens = all.value().dim(0);
      require(time > 0 && tokens % time == 0, "{}: {} tokens are not whole sequences of {}", this->name(), tokens, time);
      const Variable<M, D> logits = linear(cast<M>(all), gate.weight.master());
      const Variable<M, D> probabilities = softmax(logits);
      const auto chosen = topk(probabilities, options_.top_k);
      const Tensor<std::int64_t, Cpu> indices = chosen.indices.template to<Cpu>();
      if (Tape::current() != nullptr)
        add_losses(logits, probabilities, indices, documents(tokens, time, targets, document_starts));
      const Variable<M, D> weights = options_.renormalise ? divide(chosen.values, sum(chosen.values, -1, true)) : chosen.values;
      const auto rows = std::make_shared<const ops::ExpertRows>(
          ops::expert_rows(indices, {.experts = options_.count, .capacity = capacity(time), .tokens_of_group = time}));
      Variable<T, D> y = experts.forward(all, weights, rows);
      if (shared_expert) y = add(y, computed_beside(own));
      return reshape(y, x.shape());
    });
  }

  const MixtureOfExpertsOptions& options() const { return options_; }

 private:
  MixtureOfExpertsOptions options_;

 public:
  Linear<P, D> gate;  // the router
  Experts<P, D> experts;
  std::optional<GatedMlp<P, D>> shared_expert;
  std::optional<Linear<P, D>> shared_expert_gate;

 private:
  MixtureOfExpertsOptions checked(const MixtureOfExpertsOptions& options) const {
    require((Tensor<T, D>::on_host), "{}: a mixture of experts has no kernels for GPUs yet: train it on the CPU", this->name());
    require(options.width > 0 && options.hidden > 0 && options.count > 0,
            "{}: a mixture of experts needs width, hidden and count above 0, got {}, {} and {}", this->name(), options.width,
            options.hidden, options.count);
    require(options.top_k > 0 && options.top_k <= options.count,
            "{}: top_k is {} of {} experts, but must lie between 1 and their number", this->name(), options.top_k,
            options.count);
    require(std::isfinite(options.capacity_factor), "{}: capacity_factor is {}, but must be finite", this->name(),
            options.capacity_factor);
    require(options.capacity_factor >= 0 && options.auxiliary_loss >= 0 && options.z_loss >= 0 && options.shared_hidden >= 0,
            "{}: capacity_factor, auxiliary_loss, z_loss and shared_hidden are not below 0, got {}, {}, {} and {}",
            this->name(), options.capacity_factor, options.auxiliary_loss, options.z_loss, options.shared_hidden);
    return options;
  }

  std::int64_t capacity(std::int64_t time) const {
    const double share = static_cast<double>(options_.top_k * time) / static_cast<double>(options_.count);
    // The result is at most all tokens of a sequence. The factor keeps ceil() from rounding up a product that is whole except
    // for rounding errors.
    const double places = std::ceil(options_.capacity_factor * share * (1 - 1e-12));
    return options_.capacity_factor > 0 ? static_cast<std::int64_t>(std::min(places, static_cast<double>(time))) : 0;
  }

  Variable<T, D> computed_beside(const Variable<T, D>& x) const {
    const Variable<T, D> y = shared_expert->forward(x);
    if (!shared_expert_gate) return y;
    return multiply(y, cast<T>(sigmoid(linear(cast<M>(x), this->shared(shared_expert_gate->weight)))));
  }

  // A range of tokens, and how many of them have a target that is not ignored.
  struct Document {
    std::int64_t first;
    std::int64_t tokens;
    double counted;
  };

  // Without document_starts, the documents are the sequences.
  static std::vector<Document> documents(std::int64_t tokens, std::int64_t time, const Tensor<std::int32_t, D>& targets,
                                         const Tensor<std::int32_t, D>& document_starts) {
    const auto on_host = [&](const Tensor<std::int32_t, D>& tensor, std::string_view name) {
      if (!tensor.defined()) return Tensor<std::int32_t, Cpu>();
      require(tensor.numel() == tokens, "{} of shape {} do not belong to {} sequences of {} tokens", name, tensor.shape(),
              tokens / time, time);
      return tensor.template to<Cpu>();
    };
    const auto of_targets = on_host(targets, "targets"), of_starts = on_host(document_starts, "document_starts");
    std::vector<Document> found;
    for (std::int64_t place = 0; place < tokens; ++place) {
      const bool starts = of_starts.defined() ? of_starts.data()[place] == place % time : place % time == 0;
      if (starts || place == 0) found.push_back({.first = place, .tokens = 0, .counted = 0});
      found.back().tokens += 1;
      if (!of_targets.defined() || of_targets.data()[place] != ops::ignored_target) found.back().counted += 1;
    }
    return found;
  }

  void add_losses(const Variable<M, D>& logits, const Variable<M, D>& probabilities, const Tensor<std::int64_t, Cpu>& chosen,
                  const std::vector<Document>& documents) const {
    const std::int64_t tokens = chosen.dim(0), count = options_.count;
    if (options_.auxiliary_loss > 0) {
      Tensor<M, Cpu> factors = Tensor<M, Cpu>::zeros({tokens, count});
      for (const auto& [first, length, counted] : documents) {
        const double square = static_cast<double>(length) * static_cast<double>(length);
        const double share = options_.auxiliary_loss * static_cast<double>(count) * counted / square;
        M* const of_first = factors.data() + first * count;
        for (const std::int64_t expert : chosen.narrow(first, length).span()) of_first[expert] += static_cast<M>(share);
        for (std::int64_t token = 1; token < length; ++token) std::copy_n(of_first, count, of_first + token * count);
      }
      add_loss(sum(multiply(probabilities, Variable<M, D>(factors.template to<D>()))));
    }
    if (options_.z_loss > 0) {
      Tensor<M, Cpu> factors({tokens});
      for (const auto& [first, length, counted] : documents) {
        std::fill_n(factors.data() + first, length, static_cast<M>(options_.z_loss * counted / static_cast<double>(length)));
      }
      const Variable<M, D> log_sums = logsumexp(logits, -1);
      add_loss(sum(multiply(multiply(log_sums, log_sums), Variable<M, D>(factors.template to<D>()))));
    }
  }
};

}  // namespace nn
}  // namespace trireme
