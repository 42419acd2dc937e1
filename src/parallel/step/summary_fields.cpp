#include "parallel/step/summary_fields.hpp"

#include <string>

#include "trireme/comm/base/require_same.hpp"

namespace trireme::parallel {

template <typename Action>
void SummaryFields::for_each(const std::vector<SummaryField>& fields, auto numbers, const Action& action) {
  std::size_t first = 0;
  for (const SummaryField& field : fields) {
    action(field, numbers.subspan(first, field.size));
    first += field.size;
  }
}

Pending SummaryFields::reduce(const Group& ranks, ReduceOp op, std::string_view name) {
  std::size_t size = 0;
  for (const SummaryField& field : fields_) size += field.size;
  numbers_.assign(size, 0.0);
  for_each(fields_, std::span(numbers_), [](const SummaryField& field, std::span<double> own) { field.write(own); });
  return ranks.all_reduce(std::span(numbers_), op, name);
}

void SummaryFields::read() const {
  const std::span<const double> sums(numbers_);
  for_each(fields_, sums, [](const SummaryField& field, std::span<const double> of) {
    if (field.check) field.check(of);
  });
  for_each(fields_, sums, [](const SummaryField& field, std::span<const double> of) {
    if (field.read) field.read(of);
  });
}

void add_requests(SummaryFields& fields, const StepRequests& own, StepRequests& all) {
  fields.add({.size = 2,
              .write =
                  [own](std::span<double> asked) {
                    asked[0] = own.stop ? 1 : 0;
                    asked[1] = own.checkpoint ? 1 : 0;
                  },
              .read = [&all](std::span<const double> asked) { all = {.stop = asked[0] > 0, .checkpoint = asked[1] > 0}; }});
}

// All numbers are equal if ranks x (sum of squares) = (sum)^2.
void add_step_number(SummaryFields& fields, std::int64_t number, const Group& ranks) {
  fields.add({.size = 2,
              .write =
                  [number](std::span<double> own) {
                    own[0] = static_cast<double>(number % 4093);  // its square and the sums stay exact
                    own[1] = own[0] * own[0];
                  },
              .check =
                  [number, &ranks](std::span<const double> sums) {
                    const auto size = static_cast<double>(ranks.size());
                    if (size * sums[1] != sums[0] * sums[0]) {
                      require_same(ranks, "step", {{"begin", number}});
                    }
                  }});
}

}  // namespace trireme::parallel
