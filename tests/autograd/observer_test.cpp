// Observers with unusual combinations of operations, observers and tapes.
#include "trireme/autograd/observer.hpp"

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "catch.hpp"
#include "diary.hpp"
#include "gradient_check.hpp"
#include "trireme/autograd/operations/elementwise.hpp"
#include "trireme/autograd/operations/reduce.hpp"
#include "trireme/autograd/record.hpp"

using namespace trireme;

namespace {

using tests::Diary;
using tests::random;

Variable<double> watched(const Shape& shape, std::uint64_t seed) {
  return watch(random(shape, seed), [](const Tensor<double>&) {});
}

// The numbers of the operations of a pass, by their names.
std::multimap<std::string, std::uint64_t> numbers(const Diary& diary, Pass pass) {
  std::multimap<std::string, std::uint64_t> numbers;
  for (const Diary::Entry& entry : diary.entries) {
    if (entry.pass == pass) numbers.emplace(entry.name, entry.number);
  }
  return numbers;
}

// Twice x, by another operation.
struct Twice {
  static constexpr std::string_view name = "twice";
  void forward(const Tensor<double>& x, Tensor<double>& y) const { y = scale(Variable<double>(x), 2.0).value(); }
  void backward(const Tensor<double>& dy, const Gradient<double>& dx) const {
    dx.give(scale(Variable<double>(dy), 2.0).value());
  }
};

TEST_CASE("an operation that runs others has the same number forward and backward") {
  Diary diary;
  const Observation observation(diary);
  const Tape tape;
  sum(record(Twice{}, Result<double>{{2}}, watched({2}, 1))).backward();
  CHECK(diary.open.empty());
  CHECK(diary.names(Pass::forward) == std::vector<std::string>{"watch", "twice", "scale", "sum", "scale"});
  CHECK(diary.names(Pass::backward) == std::vector<std::string>{"sum", "twice", "watch"});
  const auto forward = numbers(diary, Pass::forward);
  for (const auto& [name, number] : numbers(diary, Pass::backward)) {
    CAPTURE(name);
    CHECK(forward.find(name)->second == number);
  }
}

TEST_CASE("operations of several tapes of a thread have different numbers") {
  Diary diary;
  const Observation observation(diary);
  Tape first;
  const auto loss = sum(watched({2}, 1));
  first.suspend();
  {
    const Tape second;
    sum(scale(watched({2}, 2), 2.0)).backward();
  }
  first.resume();
  loss.backward();
  std::set<std::uint64_t> forward;
  std::set<std::uint64_t> backward;
  for (const Diary::Entry& entry : diary.entries) (entry.pass == Pass::forward ? forward : backward).insert(entry.number);
  CHECK(forward.size() == 5);
  CHECK(backward == forward);
}

TEST_CASE("what an observer computes with operations is not observed") {
  struct Sums : Observer {
    int operations = 0;
    void after(Pass, const OperationView&) override {
      ++operations;
      REQUIRE(operations < 10);
      sum(Variable<double>(random({2}, 1)));
    }
  } sums;
  Diary diary;
  const Observation first(diary);
  const Observation second(sums);
  const Tape tape;
  sum(scale(watched({2}, 1), 2.0)).backward();
  CHECK(sums.operations == 6);
  CHECK(diary.names(Pass::forward) == std::vector<std::string>{"watch", "scale", "sum"});
}

TEST_CASE("after an observer has thrown the others see the next operations") {
  for (const Pass pass : {Pass::forward, Pass::backward}) {
    for (const bool before : {true, false}) {
      CAPTURE(pass == Pass::forward, before);
      struct Refusal : Observer {
        Pass pass;
        bool at_first;
        void refuse(Pass of, const OperationView& view, bool first) const {
          require(of != pass || first != at_first || view.name != "scale", "no {} here", view.name);
        }
        void before(Pass of, const OperationView& view) override { refuse(of, view, true); }
        void after(Pass of, const OperationView& view) override { refuse(of, view, false); }
      } refusal;
      refusal.pass = pass;
      refusal.at_first = before;
      Diary diary;
      const Observation first(diary);
      {
        const Observation second(refusal);
        const Tape tape;
        CHECK_THROWS_WITH(sum(scale(watched({2}, 1), 2.0)).backward(), "no scale here");
      }
      diary.entries.clear();
      const Tape tape;
      sum(scale(watched({2}, 1), 2.0)).backward();
      CHECK(diary.entries.size() == 6);
    }
  }
}

TEST_CASE("observations may end in any order, also while an operation runs") {
  Diary diaries[3];
  std::vector<std::unique_ptr<Observation>> observations;
  for (Diary& diary : diaries) observations.push_back(std::make_unique<Observation>(diary));
  const Variable<double> x = random({2}, 1);
  scale(x, 2.0);
  observations[0].reset();
  scale(x, 2.0);
  observations[2].reset();
  scale(x, 2.0);
  CHECK(diaries[0].entries.size() == 1);
  CHECK(diaries[1].entries.size() == 3);
  CHECK(diaries[2].entries.size() == 2);
  {
    const Tape tape;
    const auto y = watch(random({2}, 1), [&](const Tensor<double>&) { observations[1].reset(); });
    sum(scale(y, 2.0)).backward();
  }
  CHECK(diaries[1].names(Pass::backward) == std::vector<std::string>{"sum", "scale", "watch"});
  scale(x, 2.0);
  CHECK(diaries[1].entries.size() == 9);

  // An observer that looks at one operation alone.
  struct One : Observer {
    std::optional<Observation> observation{*this};
    int operations = 0;
    void before(Pass, const OperationView&) override {
      ++operations;
      observation.reset();
    }
  } one;
  Diary last;
  const Observation observation(last);
  for (int i = 0; i < 2; ++i) scale(x, 2.0);
  CHECK(one.operations == 1);
  CHECK(last.entries.size() == 2);
}

TEST_CASE("an observer that comes between forward and backward sees backward") {
  Diary diary;
  const Tape tape;
  const auto loss = sum(scale(watched({2}, 1), 2.0));
  const Observation observation(diary);
  loss.backward();
  CHECK(diary.names(Pass::forward).empty());
  CHECK(diary.names(Pass::backward) == std::vector<std::string>{"sum", "scale", "watch"});
}

}  // namespace
