#include "trireme/autograd/flat_store.hpp"

#include <barrier>
#include <string>
#include <thread>
#include <vector>

#include "catch.hpp"
#include "trireme/core/error.hpp"

using trireme::DType;
using trireme::Error;
using trireme::FlatStore;
using trireme::Initializer;

namespace {

class OwnHeap final : public trireme::device::MemoryResource {
 public:
  std::string_view name() const noexcept override { return "own heap"; }

 private:
  void* do_allocate(std::size_t bytes) override { return ::operator new (bytes, std::align_val_t{trireme::device::alignment}); }
  void do_deallocate(void* block, std::size_t) noexcept override {
    ::operator delete (block, std::align_val_t{trireme::device::alignment});
  }
};

}  // namespace

TEST_CASE("parameters lie in reverse registration order at 64-byte boundaries, frozen ones last") {
  FlatStore store(DType::float32);
  const int first = store.add("first", {3, 5}, Initializer::constant(1));
  const int frozen = store.add("frozen", {2}, Initializer::constant(2));
  const int last = store.add("last", {7}, Initializer::constant(3));
  store.freeze(frozen);
  store.initialize<float>(1);

  CHECK(store.parameter(last).offset == 0);
  CHECK(store.parameter(first).offset == 16);
  CHECK(store.parameter(frozen).offset == 32);
  CHECK(store.trainable_numel() == 32);
  CHECK(store.numel() == 48);
  CHECK(store.num_elements() == 24);
  CHECK(store.values<float>(first).data()[14] == 1);
  CHECK(store.values<float>().data()[15 + 16] == 0);  // the gap after `first`
  CHECK(reinterpret_cast<std::uintptr_t>(store.values<float>(first).data()) % 64 == 0);
}

TEST_CASE("initial values depend on seed and name alone") {
  FlatStore small(DType::float32);
  const int alone = small.add("layer.weight", {40, 30}, Initializer::normal(0.5, 2));
  FlatStore large(DType::float32);
  large.add("before", {11}, Initializer::uniform(-1, 1));
  const int after = large.add("layer.weight", {40, 30}, Initializer::normal(0.5, 2));
  small.initialize<float>(7);
  large.initialize<float>(7);
  double sum = 0;
  double squares = 0;
  for (int index = 0; index < 1200; ++index) {
    const float value = small.values<float>(alone).data()[index];
    REQUIRE(value == large.values<float>(after).data()[index]);
    sum += value;
    squares += (value - 0.5) * (value - 0.5);
  }
  CHECK(sum / 1200 == Approx(0.5).margin(0.2));
  CHECK(squares / 1200 == Approx(4).epsilon(0.2));
  small.initialize<float>(8);
  CHECK(small.values<float>(alone).data()[0] != large.values<float>(after).data()[0]);
}

TEST_CASE("a model of more elements or bytes than can be counted is refused") {
  const auto numel_of = [](int parameters, std::int64_t each) {
    FlatStore store(DType::float32);
    for (int i = 0; i < parameters; ++i) store.add(std::to_string(i), {each}, Initializer::constant(0));
    return store.numel();
  };
  CHECK_THROWS_WITH(numel_of(3, std::int64_t{1} << 62), ContainsSubstring("the model has more than 2^63 elements"));
  CHECK_THROWS_WITH(numel_of(1, std::int64_t{1} << 62), ContainsSubstring("of float32 have more than 2^64 bytes"));
}

TEST_CASE("what a store's values lay in before it moved is given back, and no smaller block keeps it") {
  FlatStore store(DType::float32);
  const int weight = store.add("weight", {4 << 20}, Initializer::constant(1));
  store.initialize<float>(1);
  store.relocate(std::make_shared<OwnHeap>());
  CHECK(store.values<float>(weight).data()[0] == 1);
  CHECK(trireme::device::host_memory_statistics().cached_bytes == 0);
}

TEST_CASE("a store keeps its values when it moves, and refuses late or double names") {
  FlatStore store(DType::float64);
  const int weight = store.add("weight", {4}, Initializer::uniform(0, 1));
  CHECK_THROWS_AS(store.add("weight", {4}, Initializer::constant(0)), Error);
  store.initialize<double>(3);
  const auto before = store.values<double>(weight).clone();
  store.relocate(trireme::device::host_memory());
  for (int index = 0; index < 4; ++index) CHECK(store.values<double>(weight).data()[index] == before.data()[index]);
  CHECK_THROWS_AS(store.add("late", {4}, Initializer::constant(0)), Error);
  CHECK_THROWS_AS(store.values<float>(weight), Error);
}

TEST_CASE("threads that read one store at once find the same values, which the first of them makes") {
  constexpr int threads = 4;
  struct Seen {
    const void* weight = nullptr;
    const void* copy = nullptr;
    const void* mean = nullptr;
    float first = 0;
    float last = 0;
  };
  for (int round = 0; round < 100; ++round) {
    FlatStore store(DType::float32, DType::bfloat16);
    std::vector<int> parameters;
    for (int layer = 0; layer < 20; ++layer) {
      parameters.push_back(store.add("layer" + std::to_string(layer), {3}, Initializer::normal(0, 1)));
    }
    const int mean = store.add_buffer("mean", {2000}, 1);
    const bool is_written = round % 2 == 0;  // past the store
    for (const int index : parameters) {
      if (is_written) store.values<float>(index).data()[2] = 4;
    }
    std::vector<Seen> seen(threads);
    std::barrier begin(threads);
    std::vector<std::thread> readers;
    for (Seen& mine : seen) {
      readers.emplace_back([&] {
        begin.arrive_and_wait();
        mine.weight = store.values<float>(parameters[0]).data();
        mine.copy = store.compute_values<trireme::bfloat16>(parameters[0]).data();
        const auto values = store.buffers().values<float>(mean);
        mine.mean = values.data();
        mine.first = values.data()[0];
        mine.last = values.data()[1999];
        for (const int index : parameters) {
          if (is_written) store.require_values(index);
        }
      });
    }
    for (std::thread& reader : readers) reader.join();
    for (const Seen& one : seen) {
      REQUIRE(one.weight == store.values<float>(parameters[0]).data());
      REQUIRE(one.copy == store.compute_values<trireme::bfloat16>(parameters[0]).data());
      REQUIRE(one.mean == store.buffers().values<float>(mean).data());
      REQUIRE((one.first == 1 && one.last == 1));
    }
  }
}

TEST_CASE("threads that read parameters without values are all refused") {
  FlatStore store(DType::float32);
  const int first = store.add("first", {2}, Initializer::normal(0, 1));
  const int second = store.add("second", {2}, Initializer::normal(0, 1));
  store.values<float>(first).data()[0] = 1;
  std::vector<std::string> said(3);
  std::vector<std::thread> readers;
  for (std::string& mine : said) {
    readers.emplace_back([&] {
      try {
        store.require_values(first);
        store.require_values(second);
      } catch (const Error& error) {
        mine = error.what();
      }
    });
  }
  for (std::thread& reader : readers) reader.join();
  for (const std::string& text : said)
    CHECK(text.find("1 of the model's 2 parameters, the first of them second,") != text.npos);
}
