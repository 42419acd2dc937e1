#include "trireme/data/sources/bad_samples.hpp"

#include <cerrno>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "catch.hpp"
#include "data/tar_files.hpp"
#include "temporary_folder.hpp"
#include "trireme/core/error.hpp"
#include "trireme/core/log.hpp"
#include "trireme/data/loaders/loader.hpp"
#include "trireme/data/loaders/prefetching.hpp"
#include "trireme/data/shards/json_lines.hpp"
#include "trireme/data/sources/grouped.hpp"
#include "trireme/data/sources/joined.hpp"

using namespace trireme;
using namespace trireme::data;

namespace {

// Numbers from `first` on, of which some are bad, and one can't be fetched.
struct Numbers {
  std::int64_t first = 0;
  std::int64_t count = 10;
  std::set<std::int64_t> bad = {};
  std::int64_t lost = -1;

  std::int64_t size() const { return count; }
  std::int64_t at(std::int64_t index) const {
    if (index == lost) throw Error({.code = ErrorCode::io, .message = "the server is lost", .error_number = ECONNRESET});
    if (bad.contains(index)) throw BadSample({.message = fmt::format("{} is bad", first + index), .path = "numbers"});
    return first + index;
  }
};

// What the log says until it is destroyed.
class KeptLog {
 public:
  KeptLog() {
    set_log_sink([this](Severity, std::string_view line) {
      const std::scoped_lock lock(mutex_);
      lines_.emplace_back(line);
    });
  }
  ~KeptLog() { set_log_sink({}); }
  const std::vector<std::string>& lines() const { return lines_; }

 private:
  std::mutex mutex_;
  std::vector<std::string> lines_;
};

// The samples of steps [0, steps) of all ranks.
template <typename Dataset>
std::vector<std::int64_t> samples_of(const Dataset& dataset, LoaderOptions options, int ranks, std::int64_t steps,
                                     const PrefetchOptions& ahead = {.threads = 0}) {
  std::vector<std::int64_t> samples;
  std::vector<Prefetching<Loader<Dataset>>> loaders;
  options.batch.count = ranks;
  for (int rank = 0; rank < ranks; ++rank) {
    options.batch.index = rank;
    loaders.emplace_back(Loader(dataset, options), ahead);
  }
  for (std::int64_t step = 0; step < steps; ++step) {
    for (const auto& loader : loaders) {
      const auto batch = loader.load(step);
      samples.insert(samples.end(), batch.items.begin(), batch.items.end());
    }
  }
  return samples;
}

}  // namespace

TEST_CASE("the place of a bad sample is taken by the next good one, and the log names it once") {
  const KeptLog log;
  const SkipBadSamples numbers(Numbers{.bad = {3, 4, 9}});
  for (int time = 0; time < 2; ++time) {
    CHECK(numbers.at(2) == 2);
    CHECK(numbers.at(3) == 5);
    CHECK(numbers.at(4) == 5);
    CHECK(numbers.at(9) == 0);
  }
  CHECK(numbers.num_bad_samples() == 3);
  REQUIRE(log.lines().size() == 3);
  CHECK_THAT(log.lines()[1], ContainsSubstring("sample 4 is bad") && ContainsSubstring("4 is bad; file numbers"));
  CHECK_THROWS_WITH(numbers.at(10), ContainsSubstring("item 10 of 10"));
}

TEST_CASE("a bad sample stops by default, and what is no bad sample always does") {
  const SkipBadSamples stopping(Numbers{.bad = {3}}, {});
  CHECK_THROWS_AS(stopping.at(3), BadSample);
  CHECK(stopping.num_bad_samples() == 0);
  const KeptLog log;
  const SkipBadSamples numbers(Numbers{.bad = {3}, .lost = 4});
  CHECK_THROWS_WITH(numbers.at(3), ContainsSubstring("the server is lost"));  // so that no other sample takes the place
  CHECK_THROWS_WITH(numbers.at(4), ContainsSubstring("the server is lost"));
  CHECK(log.lines().size() == 1);
}

TEST_CASE("more bad samples than the bound stop, and so does a dataset of bad samples alone") {
  const KeptLog log;
  const SkipBadSamples numbers(Numbers{.count = 100, .bad = {10, 20, 30}}, {.policy = OnBadSample::skip, .most = 2});
  CHECK(numbers.at(10) == 11);
  CHECK(numbers.at(20) == 21);
  CHECK(numbers.at(10) == 11);
  try {
    numbers.at(30);
    FAIL("three are no more than two");
  } catch (const BadSample&) {
    FAIL("an outer policy would skip it");
  } catch (const Error& error) {
    CHECK(error.code() == ErrorCode::corrupt_file);
    CHECK_THAT(error.what(), ContainsSubstring("more than 2 bad samples; sample 30: 30 is bad; file numbers"));
  }
  CHECK_THROWS_WITH(numbers.at(10), ContainsSubstring("more than 2 bad samples"));
  CHECK_THROWS_WITH(SkipBadSamples(Numbers{.count = 2, .bad = {0, 1}}).at(1), ContainsSubstring("all 2 samples are bad"));
  CHECK_THROWS_WITH(SkipBadSamples(Numbers(), {.most = -1}), ContainsSubstring("at most -1 bad samples"));
}

TEST_CASE("any ranks, workers and threads that read ahead skip alike, also in mixtures") {
  const KeptLog log;
  const auto part = [](std::int64_t first, std::set<std::int64_t> bad) {
    return SkipBadSamples(Numbers{.first = first, .count = 50, .bad = std::move(bad)});
  };
  const Joined parts({part(0, {0, 7, 8, 49}), part(100, {49})});
  const LoaderOptions options{.batch = {.batch_size = 12}, .mixture = {{0, {0.7, 0.3}}, {5, {0.5, 0.5}}}};
  const auto expected = samples_of(parts, options, 1, 20);
  for (const std::int64_t bad : {0, 7, 8, 49, 149}) CHECK(std::ranges::count(expected, bad) == 0);
  LoaderOptions with_workers = options;
  with_workers.workers = 4;
  CHECK(samples_of(parts, with_workers, 1, 20) == expected);
  CHECK(samples_of(parts, with_workers, 3, 20, {.threads = 3, .batches = 4}) == expected);
  CHECK(Loader(parts, options).report().num_bad_samples == 5);
  CHECK(log.lines().size() == 5);

  // Around a dataset of parts a sample stays in its part.
  const SkipBadSamples around(Joined({Numbers{.bad = {9}}, Numbers{.first = 100, .bad = {9}}}));
  CHECK(around.at(9) == 0);
  CHECK(around.at(19) == 100);
  CHECK(around.parts().size() == 2);
  const std::vector<std::int32_t> odd{0, 1, 0, 1, 0, 1, 0, 1, 0, 1};
  const SkipBadSamples by_class(Grouped(Numbers{.bad = {8, 9}}, odd));
  CHECK(by_class.at(4) == 0);
  CHECK(by_class.at(9) == 1);
}

TEST_CASE("a line that is no JSON is skipped") {
  struct Texts {
    JsonLines lines;
    std::int64_t size() const { return lines.size(); }
    std::string at(std::int64_t index) const { return text_of(lines.at(index), "text"); }
  };
  const KeptLog log;
  const tests::TemporaryFolder folder;
  const Location file = folder.path() / "x.jsonl";
  tests::write_text(folder.path() / "x.jsonl", "{\"text\": \"a\"}\n{\"text\": 1}\n{\"text\": \"c\"\n{\"text\": \"d\"}\n");
  const SkipBadSamples texts(Texts{JsonLines({file})});
  CHECK(texts.at(0) == "a");
  CHECK(texts.at(1) == "d");
  CHECK(texts.at(2) == "d");
  REQUIRE(log.lines().size() == 2);
  CHECK_THAT(log.lines()[0], ContainsSubstring("line 2: \"text\" is no text") && ContainsSubstring("x.jsonl"));
}
