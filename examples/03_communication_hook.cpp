// A compression of your own: one bit for each element of a gradient. Between ranks only the signs travel, with one scale for
// each parameter; what they leave out is added to the next step's gradient (1-bit SGD, Seide et al. 2014).

#include <cmath>
#include <cstdio>
#include <map>
#include <trireme/trireme.hpp>

using namespace trireme;
using parallel::GradientBucket;
using parallel::HookTask;
using parallel::NamedTensor;

class Signs final : public parallel::CommunicationHook {
 public:
  std::string str() const override { return "signs"; }

  void prepare(std::span<const ParameterInfo> parameters) override {
    for (const ParameterInfo& parameter : parameters) errors_[parameter.name] = Tensor<float>::zeros(parameter.shape);
  }

  // `mine`: for each gradient its scale, then 32 signs a word.
  HookTask reduce(GradientBucket& bucket) override {
    std::vector<std::uint32_t> mine;
    for (const NamedTensor& gradient : bucket.gradients()) encode(gradient, mine);
    std::vector<std::uint32_t> all;
    co_await bucket.all_gather(mine, all);  // backward goes on meanwhile
    for (const auto& [name, values] : bucket.gradients()) std::ranges::fill(values.span(), 0.0F);
    for (const std::uint32_t* words = all.data(); words != all.data() + all.size();) {
      for (const NamedTensor& gradient : bucket.gradients()) words = decode(words, gradient.values);
    }
  }

  std::vector<NamedTensor> state() override {  // a checkpoint keeps the errors
    std::vector<NamedTensor> state;
    for (const auto& [name, error] : errors_) state.push_back({name + ".error", error});
    return state;
  }

 private:
  void encode(const NamedTensor& gradient, std::vector<std::uint32_t>& words) {
    const std::span<float> error = errors_.at(gradient.name).span();
    float scale = 0;
    for (std::size_t index = 0; index < error.size(); ++index) {
      error[index] += gradient.values.data()[index];
      scale += std::abs(error[index]) / static_cast<float>(error.size());
    }
    words.push_back(std::bit_cast<std::uint32_t>(scale));
    const std::size_t begin = words.size();
    words.resize(begin + (error.size() + 31) / 32);
    for (std::size_t index = 0; index < error.size(); ++index) {
      const bool positive = error[index] > 0;
      words[begin + index / 32] |= static_cast<std::uint32_t>(positive) << index % 32;
      error[index] -= positive ? scale : -scale;
    }
  }

  static const std::uint32_t* decode(const std::uint32_t* words, const Tensor<float>& sum) {
    const float scale = std::bit_cast<float>(*words++);
    for (std::int64_t index = 0; index < sum.numel(); ++index) {
      sum.data()[index] += (words[index / 32] >> index % 32 & 1) != 0 ? scale : -scale;
    }
    return words + (sum.numel() + 31) / 32;
  }

  std::map<std::string, Tensor<float>> errors_;
};

struct Net : nn::Module<Float32> {
  Linear hidden{*this, "hidden", {.in = 1, .out = 16}};
  Linear output{*this, "output", {.in = 16, .out = 2}};

  Value forward(const Value& x) const { return output.forward(relu(hidden.forward(x))); }
};

int train(const Group& world) {
  const std::int64_t share = 32;
  Net model;
  model.initialize();
  const parallel::Hooked signs{{.hook = std::make_shared<Signs>(),
                                .only_if_faster = false,  // so small a model would be left alone
                                .between = parallel::CompressionBetween::ranks}};
  parallel::DataParallel replicas(model, ProcessMesh(world), {.sum = signs});
  optim::AdamW optimizer(model, {.learning_rate = 0.01});

  for (int number = 0; number <= 400; ++number) {
    const std::int64_t first = (number * world.size() + world.rank()) * share;  // of this rank's samples
    Tensor<float> x({share, 1});
    Tensor<std::int32_t> positive({share});
    for (std::int64_t row = 0; row < share; ++row) {  // is sin(x) above 0?
      const std::int64_t sample = first + row;
      x.data()[row] = static_cast<float>(sample * 389 % 1000) / 200 - 2.5F;
      positive.data()[row] = std::sin(x.data()[row]) > 0;
    }
    parallel::Step step = replicas.begin(number);
    step.backward(first, [&] { return cross_entropy(model.forward(x), positive); });
    step.update(optimizer);
    if (world.rank() == 0 && number % 100 == 0) std::printf("step %3d  loss %.4f\n", number, step.finish().loss());
  }
  return 0;
}

int main() { return launch(BackendKind::mpi, {}, train); }
