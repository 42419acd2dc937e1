#include <vector>

#include "catch.hpp"
#include "trireme/core/bfloat16.hpp"
#include "trireme/device/cuda.hpp"
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

TEST_CASE("this machine's GPU is described") {
  const CudaDevice device = cuda_device(0);
  CHECK_FALSE(device.name.empty());
  CHECK(device.memory_bytes > std::size_t{1} << 30);
  CHECK_THROWS_WITH(set_cuda_device(cuda_device_count()), ContainsSubstring("there is no GPU"));
}
