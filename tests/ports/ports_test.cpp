#include "ports.hpp"

#include <fmt/format.h>

#include "catch.hpp"
#include "fixtures.hpp"
#include "trireme/testing/ranks.hpp"

// The ports of this folder reach the losses of their originals, which tests/reference/generator/ports.py has run.
using namespace trireme;

namespace {

const std::map<std::string, ports::Port*> all_ports{{"conformer", ports::conformer},
                                                    {"graph_attention", ports::graph_attention},
                                                    {"two_tower", ports::two_tower},
                                                    {"unet", ports::unet},
                                                    {"vae", ports::vae},
                                                    {"wavenet", ports::wavenet}};

// Each rank has the whole batch, so any number of them has the losses of one.
std::vector<std::string> trained(const tests::Fixture& fixture) {
  const SafetensorsFile file = fixture.tensors();
  const ports::Data data{.numbers = read_tensors<float>(file), .indices = read_tensors<std::int32_t>(file)};
  const std::string weights = tests::fixture(std::string(fixture.index.at("weights"))).file.string();
  const std::vector<float> expected = tests::read_floats(file, "loss_f64");
  std::vector<std::string> problems;
  for (const int ranks : {1, 2}) {
    ports::Losses losses;
    const auto run = [&](const Group& world) {
      const ports::Losses here = all_ports.at(fixture.index.at("port"))(world, weights, data);
      if (world.rank() == 0) losses = here;
    };
    testing::run_ranks(ranks, run, {.threads_per_rank = 1});
    double most = 0;
    for (std::size_t step = 0; step < std::min(losses.size(), expected.size()); ++step)
      most = std::max(most, std::abs(losses[step] / static_cast<double>(expected[step]) - 1));
    fmt::print("{} on {} ranks: off by {:.1e}, allowed are {:.1e}\n", fixture.id(), ranks, most, fixture.tolerance().rtol);
    const std::vector<float> got(losses.begin(), losses.end());
    const std::string text = got.size() == expected.size() ? tests::mismatch(got, expected, fixture.tolerance())
                                                           : fmt::format("{} losses, not {}", got.size(), expected.size());
    if (!text.empty()) problems.push_back(fmt::format("{} ranks: {}", ranks, text));
  }
  return problems;
}

}  // namespace

TEST_CASE("ports of PyTorch's programs have the losses of their originals") {
  CHECK(tests::problems_of("port", trained) == "");
  const auto fixtures = tests::fixtures_of_kind("port");
  if (!fixtures.empty()) CHECK(fixtures.size() == all_ports.size());  // another set of references may have none
}
