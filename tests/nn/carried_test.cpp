#include "trireme/nn/base/carried.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "catch.hpp"
#include "trireme/nn/recurrent/recurrent.hpp"

using namespace trireme;

namespace {

struct Batch {
  std::int64_t count = 1;
  std::int64_t first_row = 0;
  bool continues = true;
  std::int64_t rows() const { return count; }
};

struct Memory : nn::Module<Float32> {
  explicit Memory(const ModelContext& context = {}) : Module(context) {}
  nn::Carried<Float32> rows{*this, "memory", {2}};
};

constexpr BatchRows second_half{.batch_size = 8, .own = {4, 8}};

std::vector<float> read(const Memory& memory, const Batch& batch) {
  const Tensor<float> values = memory.rows.of(batch);
  CHECK(values.shape() == Shape({batch.count, 2}));
  return {values.span().begin(), values.span().end()};
}

void keep(const Memory& memory, const Batch& batch, float value) {
  memory.rows.keep(batch, Tensor<float>::full({batch.count, 2}, value));
}

template <typename Action>
std::string error_of(const Action& action) {
  try {
    action();
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

}  // namespace

// A step as DataParallel takes it; a tape for each micro-batch.
class Step {
 public:
  explicit Step(const nn::Module<Float32>& model) : store_(model.store()) { store_.begin_step(); }
  ~Step() { store_.clear_gradients(); }
  Step(const Step&) = delete;
  Step& operator=(const Step&) = delete;
  void take_back() { store_.buffers().restore(); }

 private:
  FlatStore& store_;
  Tape tape_;
};

TEST_CASE("rows find what they kept in the step before") {
  const Memory memory(ModelContext{.rows = second_half});
  {
    const Step step(memory);
    CHECK(read(memory, {.count = 1, .first_row = 4}) == std::vector<float>{0, 0});
    keep(memory, {.count = 2, .first_row = 4}, 1);
    keep(memory, {.count = 2, .first_row = 6}, 2);
    CHECK(read(memory, {.count = 2, .first_row = 4}) ==
          std::vector<float>{0, 0, 0, 0});  // once more: what the step before left
  }
  const Step step(memory);
  CHECK(read(memory, {.count = 2, .first_row = 5}) == std::vector<float>{1, 1, 2, 2});  // other micro-batches than before
  const Tensor<float> before = memory.rows.of(Batch{.count = 1, .first_row = 4});
  keep(memory, {.count = 1, .first_row = 4}, 5);
  CHECK(before.span()[0] == 1);  // a copy: a backward pass still reads it
  CHECK(read(memory, {.count = 1, .first_row = 5, .continues = false}) == std::vector<float>{0, 0});
}

TEST_CASE("a step that is taken back leaves the rows as they were, or begun anew") {
  const Memory memory(ModelContext{.rows = second_half});
  {
    const Step step(memory);
    keep(memory, {.count = 4, .first_row = 4}, 1);
  }
  {
    Step step(memory);
    keep(memory, {.count = 4, .first_row = 4}, 2);
    read(memory, {.count = 2, .first_row = 6, .continues = false});
    step.take_back();
  }
  const Step step(memory);
  CHECK(read(memory, {.count = 4, .first_row = 4}) == std::vector<float>{1, 1, 1, 1, 0, 0, 0, 0});
}

TEST_CASE("what is computed outside of training steps carries values of its own") {
  Memory memory(ModelContext{.rows = second_half});
  {
    const Step step(memory);
    keep(memory, {.count = 4, .first_row = 4}, 1);
    memory.eval();
    keep(memory, {.count = 4, .first_row = 4}, 2);
    CHECK(read(memory, {.count = 4, .first_row = 4})[0] == 2);
    memory.train();
  }
  const Tape tape;
  CHECK(read(memory, {.count = 4, .first_row = 4})[0] == 2);
  keep(memory, {.count = 3, .first_row = 0}, 3);  // rows of another rank, and as many as it likes
  CHECK(read(memory, {.count = 3, .first_row = 0})[0] == 3);
  keep(memory, {.count = 2, .first_row = 2}, 4);
  CHECK(read(memory, {.count = 2, .first_row = 2})[0] == 4);
  CHECK(error_of([&] { read(memory, {.count = 3, .first_row = 0}); }).find("no evaluation has computed these rows") !=
        std::string::npos);
  CHECK(error_of([&] { read(memory, {.count = 1, .first_row = 9}); }).find("no evaluation has computed these rows") !=
        std::string::npos);
  const Step step(memory);
  CHECK(read(memory, {.count = 4, .first_row = 4})[0] == 1);
}

TEST_CASE("rows of other ranks and values of another size are refused") {
  const Memory memory(ModelContext{.rows = second_half});
  const Step step(memory);
  CHECK(error_of([&] { read(memory, {.count = 2, .first_row = 3}); }) ==
        "memory: 2 rows from row 3 of the batch on are not on this rank, which has rows 4 to 8");
  CHECK_THROWS_AS(read(memory, {.count = 2, .first_row = 7}), Error);
  CHECK_THROWS_AS(read(memory, {.count = 1, .first_row = std::numeric_limits<std::int64_t>::max()}), Error);
  CHECK_THROWS_AS(keep(memory, {.count = 5, .first_row = 4}, 1), Error);
  CHECK_THROWS_AS(memory.rows.keep(Batch{.count = 2, .first_row = 4}, Tensor<float>::zeros({2, 3})), Error);
  CHECK_THROWS_AS(Memory(ModelContext{.rows = {.batch_size = 8, .own = {4, 9}}}), Error);
  CHECK_THROWS_AS(Memory(ModelContext{.rows = {.batch_size = 8, .own = {4, 4}}}), Error);
}

TEST_CASE("a model that knows of no rows trains on batches that do not continue") {
  const Memory memory;
  const Step step(memory);
  CHECK(read(memory, {.count = 1, .continues = false}) == std::vector<float>{0, 0});
  keep(memory, {.count = 1, .continues = false}, 1);
  CHECK(error_of([&] { read(memory, {}); }).find("ModelContext::rows") != std::string::npos);
}

TEST_CASE("checkpoints know the rows of the whole batch") {
  const Memory memory(ModelContext{.rows = second_half});
  State state;
  memory.store().add_to(state, "model.");
  REQUIRE(state.tensors().size() == 1);
  const StateTensor& tensor = state.tensors().front();
  CHECK(tensor.name == "model.memory.rows");
  CHECK(tensor.shape == Shape({8, 2}));
  REQUIRE(tensor.pieces.size() == 1);
  CHECK(tensor.pieces[0].elements.begin == 8);
  CHECK(tensor.pieces[0].elements.end == 16);
}

TEST_CASE("an LSTM in a list of layers carries its states") {
  const auto forward_twice = [](bool carried) {
    struct Net : nn::Module<Float32> {
      Net(const ModelContext& context, bool carried)
          : Module(context), lstm(*this, "lstm", {.in = 3, .hidden = 4, .layers = 2, .carried = carried}) {}
      nn::Lstm<Float32> lstm;
    };
    const Net net({.rows = {.batch_size = 2, .own = {0, 2}}}, carried);
    net.store().initialize<float>(1);
    Tensor<float> x({2, 6, 3});
    for (std::size_t i = 0; i < x.span().size(); ++i) x.span()[i] = static_cast<float>(i % 7) - 3;
    Tensor<float> halves[2] = {Tensor<float>({2, 3, 3}), Tensor<float>({2, 3, 3})};
    for (std::size_t row = 0; row < 2; ++row) {
      for (std::size_t i = 0; i < 18; ++i) halves[i / 9].span()[row * 9 + i % 9] = x.span()[row * 18 + i];
    }
    const Tape tape;  // no step: values of its own
    const Variable<float> whole = net.lstm.forward(Variable<float>(x)).out;
    const Variable<float> first = net.lstm.forward(Variable<float>(halves[0]), Batch{.count = 2, .continues = false});
    const Variable<float> second = net.lstm.forward(Variable<float>(halves[1]), Batch{.count = 2});
    float difference = 0;
    for (std::size_t row = 0; row < 2; ++row) {
      for (std::size_t i = 0; i < 12; ++i) {
        CHECK(first.value().span()[row * 12 + i] == Approx(whole.value().span()[row * 24 + i]).margin(1e-6));
        const float other = second.value().span()[row * 12 + i] - whole.value().span()[row * 24 + 12 + i];
        difference = std::max(difference, std::abs(other));
      }
    }
    return difference;
  };
  CHECK(forward_twice(true) < 1e-6);
  CHECK(forward_twice(false) > 1e-3);
  CHECK_THROWS_AS(nn::Gru<Float32>({.in = 3, .hidden = 4, .bidirectional = true, .carried = true}), Error);
}

TEST_CASE("an LSTM that carries nothing takes any batch, one that does says what a batch lacks") {
  const int images = 3;  // a batch without rows
  const Variable<float> x(Tensor<float>::full({2, 3, 3}, 1));
  const nn::Lstm<Float32> lstm({.in = 3, .hidden = 4});
  lstm.store().initialize<float>(1);
  CHECK(lstm.forward(x, images).shape() == Shape({2, 3, 4}));
  const nn::Lstm<Float32> carried({.in = 3, .hidden = 4, .carried = true});
  CHECK(error_of([&] { carried.forward(x, images); }).find("first_row, continues and rows()") != std::string::npos);
}
