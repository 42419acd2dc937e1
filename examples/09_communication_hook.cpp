// A compression of gradients of your own: only signs travel between ranks, with one scale for each parameter; what they leave
// out is added to the next step's gradient (1-bit SGD, Seide et al. 2014). In the repository's folder: mpirun -n 2.
#include <bit>
#include <cmath>
#include <map>
#include <trireme/trireme.hpp>
using namespace trireme;

struct Signs final : parallel::CommunicationHook {
  std::string str() const override { return "signs"; }
  void prepare(std::span<const ParameterInfo> parameters) override {
    for (const ParameterInfo& parameter : parameters) errors[parameter.name] = Tensor<float>::zeros(parameter.shape);
  }
  parallel::HookTask reduce(parallel::GradientBucket& bucket) override {
    for (const auto& [name, gradient] : bucket.gradients()) {
      const std::span<float> values = gradient.span(), error = errors.at(name).span();
      std::vector<std::uint32_t> mine(1 + (values.size() + 31) / 32), all;  // the scale, then 32 signs a word
      float scale = 0;
      for (std::size_t index = 0; index < values.size(); ++index) {
        error[index] += values[index];
        scale += std::abs(error[index]) / static_cast<float>(values.size());
      }
      mine[0] = std::bit_cast<std::uint32_t>(scale);
      for (std::size_t index = 0; index < values.size(); ++index) {
        const bool positive = error[index] > 0;
        mine[1 + index / 32] |= static_cast<std::uint32_t>(positive) << index % 32;
        error[index] -= positive ? scale : -scale;
      }
      co_await bucket.all_gather(mine, all);  // backward goes on meanwhile
      std::ranges::fill(values, 0.0F);
      for (std::size_t of_rank = 0; of_rank < all.size(); of_rank += mine.size()) {
        const float size = std::bit_cast<float>(all[of_rank]);
        for (std::size_t index = 0; index < values.size(); ++index)
          values[index] += (all[of_rank + 1 + index / 32] >> index % 32 & 1) != 0 ? size : -size;
      }
    }
  }
  std::map<std::string, Tensor<float>> errors;
};

struct Net : nn::Module<Float32> {
  using Module::Module;
  Value forward(const data::Rows& rows) const { return output.forward(relu(hidden.forward(rows.x))); }
  Loss<float> loss(const Value& y, const data::Rows& rows) const { return cross_entropy(y, rows.labels); }
  Linear hidden{*this, "hidden", {.in = 4, .out = 32}}, output{*this, "output", {.in = 32, .out = 4}};
};

int train(const Group& world) {
  parallel::CompressionOptions signs{.hook = std::make_shared<Signs>(), .only_if_faster = false};
  signs.between = parallel::CompressionBetween::ranks;  // not of nodes, which sum theirs first
  trainer::Run run(world,
                   {.until = Epochs{15}, .parallel = {.sum = parallel::Hooked{signs}}, .process = {.standard_output = true}});
  Net net(run.context());
  optim::AdamW optimizer(net, {.learning_rate = 0.01});
  const data::Loader rows(data::read_csv("examples/flowers.csv", {.label = "class"}), run.batch());
  trainer::fit(run, net, optimizer, rows);
  return 0;
}

int main() { return launch(BackendKind::mpi, {}, train); }
