#include <vector>

#include "catch.hpp"
#include "trireme/core/bfloat16.hpp"
#include "trireme/device/cuda.hpp"
#include "trireme/device/graph.hpp"
#include "trireme/device/stream.hpp"
#include "trireme/tensor/tensor.hpp"

using namespace trireme;
using namespace trireme::device;

TEMPLATE_TEST_CASE("elements go to the GPU and come back", "", std::uint16_t, bfloat16, float, double, std::int64_t) {
  std::vector<TestType> values;
  for (int i = 0; i < 1000; ++i) values.push_back(static_cast<TestType>(static_cast<float>(i)));
  const auto there = Tensor<TestType, Cuda>::from({10, 100}, values);
  const Tensor<TestType> back = there.template to<Cpu>();
  CHECK(std::equal(values.begin(), values.end(), back.data()));
  CHECK(there.narrow(3, 1).clone().reshape({100}).narrow(7, 1).item() == values[307]);
}

TEMPLATE_TEST_CASE("a tensor on the GPU is filled with one value", "", bfloat16, float, double, std::int64_t) {
  const auto value = static_cast<TestType>(2.5F);
  const Tensor<TestType> back = Tensor<TestType, Cuda>::full({7, 333}, value).template to<Cpu>();
  for (const TestType element : back.span()) REQUIRE(element == value);
}

TEST_CASE("a stream waits for an event of another") {
  Stream other;
  Event ready;
  const auto source = Tensor<float, Cuda>::full({1 << 20}, 3.0F);
  current_stream().record(ready);
  other.order_after(ready);
  other.wait();
  CHECK(ready.is_done());
  CHECK(source.narrow((1 << 20) - 1, 1).item() == 3.0F);
}

TEST_CASE("what the GPU lacks is an error that says what holds its memory") {
  const MemoryPurpose purpose("a test");
  const Tensor<float, Cuda> held({1 << 20});
  const std::int64_t too_many = std::int64_t{1} << 50;
  CHECK_THROWS_WITH((Tensor<float, Cuda>({too_many})),
                    ContainsSubstring("cuda:0 has no") && ContainsSubstring("a test: 4.0 MiB"));
}

TEST_CASE("a graph does its work at each launch, with what its memory holds then") {
  Tensor<float, Cuda> x = Tensor<float, Cuda>::full({1000}, 1.0F);
  Tensor<float, Cuda> y({1000});
  const auto copy = [](const Tensor<float, Cuda>& to, const Tensor<float, Cuda>& from) {
    copy_bytes(Cuda{}, to.data(), Cuda{}, from.data(), from.span().size_bytes());
  };
  y = Tensor<float, Cuda>::full({1000}, -1.0F);
  const Graph graph([&] {
    CHECK(is_capturing());
    const Tensor<float, Cuda> between = x.clone();  // memory of the graph's own
    copy(y, between);
  });
  CHECK_FALSE(is_capturing());
  CHECK(graph.memory_bytes() >= 4000);
  CHECK(y.narrow(7, 1).item() == -1.0F);  // nothing ran yet
  graph.launch();
  CHECK(y.narrow(7, 1).item() == 1.0F);
  const Tensor<float, Cuda> others = Tensor<float, Cuda>::full({1000}, 5.0F);
  copy(x, Tensor<float, Cuda>::full({1000}, 2.0F));
  graph.launch();
  CHECK(y.narrow(999, 1).item() == 2.0F);
  CHECK(others.narrow(3, 1).item() == 5.0F);
}

TEST_CASE("what waits for the GPU is no part of a graph, and the thread works on afterwards") {
  const auto x = Tensor<float, Cuda>::full({10}, 3.0F);
  CHECK_THROWS_WITH(Graph([&] { x.narrow(0, 1).item(); }),
                    ContainsSubstring("a copy to the host's memory can't be part of a graph"));
  CHECK_THROWS_AS(Graph([&] { current_stream().wait(); }), NotCapturable);
  CHECK_THROWS_AS(Graph([&] { const Graph inner([] {}); }), NotCapturable);
  CHECK_FALSE(is_capturing());
  CHECK(x.narrow(4, 1).item() == 3.0F);
}

TEST_CASE("this machine's GPU is described") {
  const CudaDevice device = cuda_device(0);
  CHECK_FALSE(device.name.empty());
  CHECK(device.memory_bytes > std::size_t{1} << 30);
  CHECK_THROWS_WITH(set_cuda_device(cuda_device_count()), ContainsSubstring("there is no GPU"));
}
