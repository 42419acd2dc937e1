#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <bit>
#include <cmath>

#include "parallel/hooks/kept_tensors.hpp"
#include "parallel/hooks/top_k_selection.hpp"
#include "trireme/core/error.hpp"
#include "trireme/parallel/hooks/compression.hpp"

namespace trireme::parallel {
namespace {

// A rank's message in words of 32 bits: for each parameter the selected elements, then their indices; or all elements of a
// parameter that is sent whole.
class TopKHook final : public CommunicationHook {
 public:
  explicit TopKHook(const TopKOptions& options) : options_(options) {}

  std::string str() const override {
    std::string text = fmt::format("topk:{}", options_.ratio);
    if (options_.warmup_steps > 0) {
      text += fmt::format(", {} steps each with {}", options_.warmup_steps, fmt::join(options_.warmup, ", "));
    }
    if (options_.momentum > 0) text += fmt::format(", momentum {}", options_.momentum);
    return text;
  }

  bool indispensable() const override { return options_.momentum > 0; }

  void prepare(std::span<const ParameterInfo> parameters) override {
    for (const ParameterInfo& parameter : parameters) {
      if (parameter.numel >= options_.dense_below) errors_.add(parameter.name, parameter.shape);
      if (options_.momentum > 0) velocities_.add(parameter.name, parameter.shape);
    }
  }

  HookTask reduce(GradientBucket& bucket) override {
    const double ratio = ratio_at(bucket.step());
    std::vector<std::int32_t> mine;
    for (const NamedTensor& gradient : bucket.gradients()) append(gradient, ratio, mine);
    std::vector<std::int32_t> all;
    co_await bucket.all_gather(mine, all);
    for (const auto& [name, values] : bucket.gradients()) std::ranges::fill(values.span(), 0.0F);
    for (auto message = all.begin(); message != all.end();) {
      for (const NamedTensor& gradient : bucket.gradients()) {
        const auto end = message + values_sent(gradient, ratio);
        if (!std::all_of(message, end, [](std::int32_t bits) { return std::isfinite(std::bit_cast<float>(bits)); })) {
          errors_.forget(gradient.name);
          velocities_.forget(gradient.name);
        }
        message = add(message, end, gradient);
      }
    }
  }

  std::vector<NamedTensor> state() override {
    std::vector<NamedTensor> state;
    errors_.list(state);
    velocities_.list(state);
    return state;
  }

 private:
  double ratio_at(std::int64_t step) const {
    if (options_.warmup_steps == 0) return options_.ratio;
    const auto stage = static_cast<std::size_t>(step / options_.warmup_steps);
    return stage < options_.warmup.size() ? std::max(options_.warmup[stage], options_.ratio) : options_.ratio;
  }

  static std::size_t kept(const Tensor<float>& values, double ratio) {
    return static_cast<std::size_t>(std::ceil(ratio * static_cast<double>(values.numel())));
  }

  void append(const NamedTensor& gradient, double ratio, std::vector<std::int32_t>& message) const {
    const std::span<float> values = gradient.values.span();
    const Tensor<float>* velocity = velocities_.find(gradient.name);
    if (velocity != nullptr) {
      const auto momentum = static_cast<float>(options_.momentum);
      float* velocities = velocity->data();
      for (std::size_t index = 0; index < values.size(); ++index) {
        values[index] = velocities[index] = momentum * velocities[index] + values[index];
      }
    }
    const Tensor<float>* error = errors_.find(gradient.name);
    if (error == nullptr) {
      std::ranges::transform(values, std::back_inserter(message),
                             [](float value) { return std::bit_cast<std::int32_t>(value); });
      return;
    }
    const std::span<float> errors = error->span();
    for (std::size_t index = 0; index < values.size(); ++index) errors[index] += values[index];
    const auto indices = largest_elements(errors, kept(gradient.values, ratio));
    for (const std::uint32_t index : indices) message.push_back(std::bit_cast<std::int32_t>(errors[index]));
    for (const std::uint32_t index : indices) {
      message.push_back(static_cast<std::int32_t>(index));
      errors[index] = 0;
      if (velocity != nullptr) velocity->data()[index] = 0;  // momentum factor masking
    }
  }

  // The number of elements of a gradient that each rank sends.
  std::ptrdiff_t values_sent(const NamedTensor& gradient, double ratio) const {
    if (errors_.find(gradient.name) == nullptr) return gradient.values.numel();
    return static_cast<std::ptrdiff_t>(kept(gradient.values, ratio));
  }

  // Adds one rank's message about one gradient. Its elements end at `end`; returns the end of the message.
  template <typename Iterator>
  Iterator add(Iterator message, Iterator end, const NamedTensor& gradient) const {
    float* sum = gradient.values.data();
    if (errors_.find(gradient.name) == nullptr) {
      while (message != end) *sum++ += std::bit_cast<float>(*message++);
      return end;
    }
    Iterator index = end;
    while (message != end) sum[static_cast<std::uint32_t>(*index++)] += std::bit_cast<float>(*message++);
    return index;
  }

  TopKOptions options_;
  KeptTensors errors_{"error"};
  KeptTensors velocities_{"velocity"};
};

}  // namespace

HookFactory top_k_hook(const TopKOptions& options) {
  require(options.ratio > 0 && options.ratio <= 1, "top-k keeps a share above 0, at most 1, of the elements, got {}",
          options.ratio);
  require(options.momentum >= 0 && options.momentum < 1, "top-k's momentum lies in [0, 1), got {}", options.momentum);
  require(
      options.warmup_steps >= 0 && std::ranges::all_of(options.warmup, [](double ratio) { return ratio > 0 && ratio <= 1; }),
      "top-k's warm-up takes 0 or more steps, with shares above 0, at most 1");
  return [options] { return std::make_shared<TopKHook>(options); };
}

}  // namespace trireme::parallel
