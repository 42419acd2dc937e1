#include "trireme/data/sources/bad_samples.hpp"

#include <fmt/format.h>

#include <mutex>
#include <set>

#include "trireme/core/log.hpp"

namespace trireme::data {

struct SampleReader::Seen {
  std::mutex mutex;
  std::set<std::int64_t> bad;  // their indices
};

SampleReader::SampleReader(const BadSampleOptions& options) : options_(options), seen_(std::make_shared<Seen>()) {
  require(options.most >= 0, "at most {} bad samples: the bound is 0 or more", options.most);
}

std::int64_t SampleReader::num_bad() const {
  const std::scoped_lock lock(seen_->mutex);
  return std::ssize(seen_->bad);
}

std::int64_t SampleReader::after_bad(std::int64_t index, std::int64_t tried, const Range& among, const BadSample& bad) const {
  const std::int64_t next = tried + 1 < among.end ? tried + 1 : among.begin;
  const auto refuse = [&](std::string message, std::string hint) {
    ErrorFields fields = bad.fields();
    fields.message = fmt::format("{}; sample {}: {}", message, tried, fields.message);
    fields.hint = std::move(hint);
    throw Error(std::move(fields));
  };
  {
    const std::scoped_lock lock(seen_->mutex);
    if (seen_->bad.insert(tried).second) {
      log(Severity::warning, "sample {} is bad, and the next good one takes its place: {}", tried, bad.what());
    }
    if (std::ssize(seen_->bad) > options_.most) {
      refuse(fmt::format("more than {} bad samples", options_.most), "repair the data, or allow more bad samples");
    }
  }
  if (next == index) refuse(fmt::format("all {} samples are bad", among.count()), "repair the data");
  return next;
}

}  // namespace trireme::data
