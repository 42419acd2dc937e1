#include "comm/faults.hpp"

#include <fmt/format.h>

#include <array>
#include <chrono>
#include <functional>
#include <stdexcept>
#include <vector>

#include "comm/expect.hpp"

namespace trireme::test {
namespace {

using namespace std::chrono_literals;

constexpr auto soon = 1000ms;

// The program of a well-behaved rank.
struct Program {
  explicit Program(const Group& all) : world(all), twin(all.split(0, all.rank(), "twin")) { world.barrier("together"); }

  void first() { world.all_reduce(std::span(numbers), ReduceOp::sum, "first").wait_on_host(); }
  void second() { world.broadcast(std::span(numbers), 0, "second").wait_on_host(); }
  void third() { world.all_gather(std::span(numbers), "third").wait_on_host(); }

  Group world;
  Group twin;  // another group of the same ranks
  std::vector<double> numbers = std::vector<double>(100, 1.0);
  std::vector<float> floats = std::vector<float>(100, 1.0f);
};

// Every rank runs `action`, which must fail soon with an error that contains all `parts`; launch gets that error.
void expect_fault(const std::function<void()>& action, const std::vector<std::string>& parts) {
  const auto begin = std::chrono::steady_clock::now();
  try {
    action();
  } catch (const Error& error) {
    const auto took = std::chrono::steady_clock::now() - begin;
    const std::string text = error.what();
    for (const std::string& part : parts) {
      expect(text.find(part) != std::string::npos, "\"{}\" in the text: {}", part, text);
    }
    expect(took < soon, "an error within {} ms, it took {} ms", soon.count(),
           std::chrono::duration_cast<std::chrono::milliseconds>(took).count());
    throw;
  }
  fail_check(fmt::format("an error that says \"{}\"", parts.empty() ? "" : parts.front()));
}

// The culprit calls `other` where the rest call `same`. `its` and `theirs` are the calls as errors show them.
void disagree(const Group& world, int culprit, void (*same)(Program&), void (*other)(Program&), const std::string& theirs,
              const std::string& its) {
  Program program(world);
  program.first();
  const std::string rest = world.size() > 2 ? "ranks " : "rank ";
  expect_fault(
      [&] {
        world.rank() == culprit ? other(program) : same(program);
        program.third();
        world.barrier("end");
      },
      {fmt::format("rank {} called #", culprit), its, theirs, "the ranks of group \"world\" disagree", rest});
}

constexpr auto second = [](Program& program) { program.second(); };
const std::string second_text = "broadcast(100 x float64, root 0) \"second\"";

void missing_call(const Group& world, int culprit) {
  disagree(
      world, culprit, second, [](Program&) {}, second_text, "all_gather(100 x float64) \"third\"");
}

void extra_call(const Group& world, int culprit) {
  disagree(
      world, culprit, second, [](Program& program) { program.world.barrier("extra"); }, second_text, "barrier \"extra\"");
}

void other_kind(const Group& world, int culprit) {
  disagree(
      world, culprit, second,
      [](Program& program) { program.world.all_gather(std::span(program.numbers), "second").wait_on_host(); }, second_text,
      "all_gather(100 x float64) \"second\"");
}

void other_operation(const Group& world, int culprit) {
  disagree(
      world, culprit, [](Program& program) { program.first(); },
      [](Program& program) { program.world.all_reduce(std::span(program.numbers), ReduceOp::max, "first").wait_on_host(); },
      "all_reduce(sum, 100 x float64) \"first\"", "all_reduce(max, 100 x float64) \"first\"");
}

void other_dtype(const Group& world, int culprit) {
  disagree(
      world, culprit, second,
      [](Program& program) { program.world.broadcast(std::span(program.floats), 0, "second").wait_on_host(); }, second_text,
      "broadcast(100 x float32, root 0) \"second\"");
}

void other_count(const Group& world, int culprit) {
  disagree(
      world, culprit, second,
      [](Program& program) { program.world.broadcast(std::span(program.numbers).first(99), 0, "second").wait_on_host(); },
      second_text, "broadcast(99 x float64, root 0) \"second\"");
}

void other_root(const Group& world, int culprit) {
  disagree(
      world, culprit, second,
      [](Program& program) { program.world.broadcast(std::span(program.numbers), 1, "second").wait_on_host(); }, second_text,
      "broadcast(100 x float64, root 1) \"second\"");
}

void swapped_order(const Group& world, int culprit) {
  disagree(
      world, culprit, second,
      [](Program& program) {
        program.third();
        program.second();
      },
      second_text, "all_gather(100 x float64) \"third\"");
}

// The others wait in the world, the culprit in another group of the same ranks, so that no two calls are compared.
void wrong_group(const Group& world, int culprit) {
  Program program(world);
  program.first();
  expect_fault(
      [&] {
        if (world.rank() == culprit) {
          program.twin.broadcast(std::span(program.numbers), 0, "second").wait_on_host();
        } else {
          program.second();
        }
        program.third();
        world.barrier("end");
      },
      {fmt::format("rank {} waits in #1 broadcast(100 x float64, root 0) \"second\" of group \"twin\"", culprit),
       fmt::format("rank {} waits in #", culprit == 0 ? 1 : 0), "\"second\" of group \"world\""});
}

void early_exit(const Group& world, int culprit) {
  Program program(world);
  program.first();
  if (world.rank() == culprit) return;
  expect_fault([&] { program.second(); }, {fmt::format("rank {} left the group \"world\"", culprit), second_text});
}

void last_call_missing(const Group& world, int culprit) {
  Program program(world);
  program.first();
  program.second();
  if (world.rank() == culprit) return;
  expect_fault([&] { program.third(); },
               {fmt::format("rank {} left the group \"world\"", culprit), "all_gather(100 x float64) \"third\""});
}

void call_after_the_last(const Group& world, int culprit) {
  Program program(world);
  program.first();
  if (world.rank() != culprit) return;
  expect_fault([&] { program.second(); },
               {"left the group \"world\"", fmt::format("while rank {} waits for it in #", culprit), second_text});
}

void exception(const Group& world, int culprit) {
  Program program(world);
  program.first();
  if (world.rank() == culprit) throw std::runtime_error("boom");
  expect_fault(
      [&] {
        program.second();
        program.third();
      },
      {fmt::format("rank {} failed: boom", culprit)});
}

// Two groups, called in different orders.
void swapped_groups(const Group& world, int culprit) {
  Program program(world);
  expect_fault(
      [&] {
        if (world.rank() == culprit) program.twin.barrier("across");
        world.barrier("along");
        if (world.rank() != culprit) program.twin.barrier("across");
      },
      {fmt::format("rank {} waits in #1 barrier \"across\" of group \"twin\"", culprit),
       "barrier \"along\" of group \"world\""});
}

constexpr std::array all_faults = {
    Fault{"missing call", 2, missing_call},
    Fault{"extra call", 2, extra_call},
    Fault{"other kind", 2, other_kind},
    Fault{"other operation", 2, other_operation},
    Fault{"other dtype", 2, other_dtype},
    Fault{"other count", 2, other_count},
    Fault{"other root", 2, other_root},
    Fault{"swapped order", 2, swapped_order},
    Fault{"wrong group", 2, wrong_group},
    Fault{"swapped groups", 2, swapped_groups},
    Fault{"early exit", 1, early_exit},
    Fault{"last call missing", 1, last_call_missing},
    Fault{"call after the last", 1, call_after_the_last},
    Fault{"exception", 1, exception},
};

}  // namespace

std::span<const Fault> faults() { return all_faults; }

}  // namespace trireme::test
