#include "ops/cuda_compare.hpp"
#include "ops/recurrent_case.hpp"

// Recurrent layers on a GPU against those of the CPU.
using namespace trireme;
using namespace trireme::ops;

namespace {

template <typename T>
void require_same_results(const std::vector<Tensor<T, Cuda>>& got, const std::vector<Tensor<T>>& expected) {
  REQUIRE(got.size() == expected.size());
  for (std::size_t i = 0; i < got.size(); ++i) {
    CAPTURE(i);
    require_same(got[i], expected[i], 10);
  }
}

}  // namespace

TEMPLATE_TEST_CASE("recurrent layers on the GPU", "", float, double) {
  std::vector<RecurrentCase> cases = recurrent_cases();
  for (const RecurrentCell cell : {RecurrentCell::lstm, RecurrentCell::gru}) {
    cases.push_back({.cell = cell, .reverse = false, .bias = true, .batch = 32, .time = 20, .in = 64, .hidden = 128});
    cases.push_back({.cell = cell, .reverse = true, .bias = true, .lengths = {1}, .batch = 1, .time = 1, .in = 1, .hidden = 1});
  }
  for (const RecurrentCase& of : cases) {
    CAPTURE(of.cell, of.reverse, of.bias, of.lengths, of.batch, of.hidden);
    const RecurrentLayer<TestType, Cpu> here(of);
    const RecurrentLayer<TestType, Cuda> there(of);
    recurrent(here.forward);
    recurrent(there.forward);
    require_same_results(there.results_of_forward(), here.results_of_forward());
    recurrent_backward(here.forward, here.backward);
    recurrent_backward(there.forward, there.backward);
    require_same_results(there.results_of_backward(), here.results_of_backward());
  }
}
