#include "comm/wire/wire_schedule.hpp"

#include <array>
#include <map>
#include <numeric>
#include <tuple>
#include <vector>

#include "catch.hpp"

using trireme::Algorithm;
using trireme::Range;
using namespace trireme::comm;

namespace {

constexpr std::array algorithms = {Algorithm::all_pairs, Algorithm::direct, Algorithm::ring, Algorithm::halving_doubling};

// Carries out the schedules of all ranks, a step at a time, in a world where messages are copies.
class Network {
 public:
  explicit Network(std::vector<std::vector<double>> data) : data_(std::move(data)) {}

  void run(const std::vector<WireSchedule>& schedules) {
    for (std::size_t step = 0; step < schedules.front().size(); ++step) {
      const auto before = data_;
      std::map<std::tuple<int, int>, Range> sent;
      for (std::size_t rank = 0; rank < schedules.size(); ++rank) {
        for (const Transfer& send : schedules[rank].at(step).sends) {
          REQUIRE(sent.emplace(std::tuple(static_cast<int>(rank), send.peer), send.range).second);
          elements_[rank] += send.range.count();
        }
      }
      for (std::size_t rank = 0; rank < schedules.size(); ++rank) {
        for (const Transfer& receive : schedules[rank][step].receives) {
          const auto found = sent.find({receive.peer, static_cast<int>(rank)});
          REQUIRE(found != sent.end());
          CHECK(found->second.begin == receive.range.begin);
          CHECK(found->second.end == receive.range.end);
          sent.erase(found);
          for (auto i = static_cast<std::size_t>(receive.range.begin); i < static_cast<std::size_t>(receive.range.end); ++i) {
            const double value = before[static_cast<std::size_t>(receive.peer)][i];
            data_[rank][i] = schedules[rank][step].reduces ? data_[rank][i] + value : value;
          }
        }
      }
      CHECK(sent.empty());
    }
  }

  const std::vector<double>& data(std::size_t rank) const { return data_[rank]; }
  std::int64_t elements_sent(std::size_t rank) { return elements_[rank]; }

 private:
  std::vector<std::vector<double>> data_;
  std::map<std::size_t, std::int64_t> elements_;
};

std::vector<int> numbers(int count) {
  std::vector<int> result(static_cast<std::size_t>(count));
  std::iota(result.begin(), result.end(), 0);
  return result;
}

std::vector<std::vector<double>> make_data(int ranks, std::size_t count) {
  std::vector<std::vector<double>> data;
  for (int rank = 0; rank < ranks; ++rank) {
    data.emplace_back();
    for (std::size_t i = 0; i < count; ++i) data.back().push_back((rank + 1) * 1000.0 + static_cast<double>(i));
  }
  return data;
}

}  // namespace

TEST_CASE("every algorithm gives every rank the sum, for any number of ranks and elements") {
  for (const Algorithm algorithm : algorithms) {
    for (int ranks = 2; ranks <= 9; ++ranks) {
      for (const std::size_t count : {std::size_t{1}, std::size_t{40}, std::size_t{1000}}) {
        const auto peers = numbers(ranks);
        std::vector<WireSchedule> schedules;
        for (int me = 0; me < ranks; ++me) {
          schedules.push_back(all_reduce_schedule(algorithm, peers, me, {0, static_cast<std::int64_t>(count)}));
          REQUIRE(schedules.back().size() == schedules.front().size());
        }
        const auto data = make_data(ranks, count);
        Network network(data);
        network.run(schedules);
        for (int me = 0; me < ranks; ++me) {
          INFO("algorithm " << static_cast<int>(algorithm) << ", rank " << me << " of " << ranks << ", " << count);
          bool equal = true;
          for (std::size_t i = 0; i < count; ++i) {
            double sum = 0;
            for (const auto& of_rank : data) sum += of_rank[i];
            equal = equal && network.data(static_cast<std::size_t>(me))[i] == sum;
          }
          CHECK(equal);
        }
      }
    }
  }
}

TEST_CASE("direct, ring and halving-doubling send the least that an all-reduce can") {
  for (const Algorithm algorithm : {Algorithm::direct, Algorithm::ring, Algorithm::halving_doubling}) {
    for (const int ranks : {2, 4, 8}) {
      constexpr std::int64_t count = 16 * 8 * 10;
      const auto peers = numbers(ranks);
      std::vector<WireSchedule> schedules;
      for (int me = 0; me < ranks; ++me) schedules.push_back(all_reduce_schedule(algorithm, peers, me, {0, count}));
      Network network(make_data(ranks, count));
      network.run(schedules);
      for (int me = 0; me < ranks; ++me) {
        CHECK(network.elements_sent(static_cast<std::size_t>(me)) == 2 * count * (ranks - 1) / ranks);
      }
    }
  }
}

TEST_CASE("a broadcast reaches every rank from any root") {
  for (int ranks = 2; ranks <= 5; ++ranks) {
    for (int root = 0; root < ranks; ++root) {
      const auto peers = numbers(ranks);
      std::vector<WireSchedule> schedules;
      for (int me = 0; me < ranks; ++me) schedules.push_back(broadcast_schedule(peers, me, root, {0, 20}));
      const auto data = make_data(ranks, 20);
      Network network(data);
      network.run(schedules);
      for (std::size_t me = 0; me < schedules.size(); ++me) CHECK(network.data(me) == data[static_cast<std::size_t>(root)]);
    }
  }
}

TEST_CASE("few bytes take the fewest steps, many bytes the least volume") {
  const LinkModel link{.latency_seconds = 50e-6, .seconds_per_byte = 8e-9};
  CHECK(choose_algorithm(8, 64, link) == Algorithm::all_pairs);
  CHECK(choose_algorithm(2, 1e8, link) == Algorithm::all_pairs);  // between two, everything is the least
  const Algorithm large = choose_algorithm(8, 1e8, link);
  CHECK((large == Algorithm::direct || large == Algorithm::halving_doubling));
  CHECK(all_reduce_seconds(Algorithm::ring, 8, 1e8, link) > all_reduce_seconds(large, 8, 1e8, link));
  CHECK(all_reduce_seconds(Algorithm::direct, 4, 1e6, link) == Approx(2 * 50e-6 + 6 * 5e-6 + 1.5e6 * 8e-9));
}
