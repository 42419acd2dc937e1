#include <array>
#include <span>
#include <utility>

#include "trainer/run_impl.hpp"

namespace trireme::trainer {

void Run::Impl::tell_data() {
  if (!place.shape().report) return;
  const data::LoaderReport now = place.shape().report();
  const data::LoaderReport before = std::exchange(this_start.told, now);
  monitor::Registry& registry = monitor::Registry::current();
  const auto count = [&](const char* name, double from, double to) {
    if (to > from) registry.counter(name).add(to - from);
  };
  count("data_loading_seconds", before.loading_seconds, now.loading_seconds);
  count("data_reading_seconds", before.reading_seconds, now.reading_seconds);
  count("data_decoding_seconds", before.decoding_seconds, now.decoding_seconds);
  count("data_augmenting_seconds", before.augmenting_seconds, now.augmenting_seconds);
  count("bad_samples", static_cast<double>(before.num_bad_samples), static_cast<double>(now.num_bad_samples));
  if (now.batches == now.not_ahead) return;  // nothing is read ahead
  registry.gauge("data_ready_batches").set(static_cast<double>(now.ready_batches));
  registry.gauge("data_ready_bytes").set(static_cast<double>(now.ready_bytes));
}

std::int64_t Run::Impl::bad_samples_of_all() const {
  if (!place.shape().report) return 0;
  std::array<double, 1> count{static_cast<double>(place.shape().report().num_bad_samples)};
  if (mesh.batch().size() > 1) mesh.batch().all_reduce(std::span(count), ReduceOp::sum, "bad samples").wait_on_host();
  return static_cast<std::int64_t>(count[0]);
}

}  // namespace trireme::trainer
