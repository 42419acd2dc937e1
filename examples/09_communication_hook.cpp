// A compression of your own: ranks send only the signs of their gradients and one scale per parameter. The error is added to
// the next step's gradient (1-bit SGD, Seide et al. 2014). Run it in the repository's folder by mpirun -n 2.
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
    std::vector<std::uint32_t> mine, all;  // for each gradient its scale, then 32 signs per word
    for (const auto& [name, gradient] : bucket.gradients()) {
      const std::span<float> values = gradient.span(), error = errors.at(name).span();
      float scale = 0;
      for (std::size_t i = 0; i < error.size(); ++i)
        scale += std::abs(error[i] += values[i]) / static_cast<float>(error.size());
      mine.push_back(std::bit_cast<std::uint32_t>(scale));
      for (std::size_t index = 0; index < error.size(); ++index) {
        if (index % 32 == 0) mine.push_back(0);
        mine.back() |= (error[index] > 0 ? 1U : 0U) << index % 32;
        error[index] -= error[index] > 0 ? scale : -scale;
      }
    }
    co_await bucket.all_gather(mine, all);  // backward goes on meanwhile
    for (const auto& [name, gradient] : bucket.gradients()) std::ranges::fill(gradient.span(), 0.0F);
    for (auto word = all.begin(); word != all.end();)  // the messages of all ranks
      for (const auto& [name, gradient] : bucket.gradients()) {
        const float scale = std::bit_cast<float>(*word++);
        for (std::size_t index = 0; index < gradient.span().size(); ++index)
          gradient.span()[index] += (word[static_cast<std::ptrdiff_t>(index / 32)] >> index % 32 & 1) != 0 ? scale : -scale;
        word += (gradient.numel() + 31) / 32;
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
  parallel::CompressionOptions signs{.hook = [] { return std::make_shared<Signs>(); }, .only_if_faster = false};
  signs.between = parallel::CompressionBetween::ranks;  // with `nodes` the ranks of a node would sum their gradients first
  trainer::Run run(world,
                   {.until = Epochs{15}, .parallel = {.sum = parallel::Hooked{signs}}, .process = {.standard_output = true}});
  Net net(run.context());
  optim::AdamW optimizer(net, {.learning_rate = 0.01});
  const data::Loader rows(data::read_csv("examples/flowers.csv", {.label = "class"}), run.batch());
  trainer::fit(run, net, optimizer, rows);
  return 0;
}

int main() { return launch(BackendKind::mpi, {}, train); }
