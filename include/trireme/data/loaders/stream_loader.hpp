#pragma once

#include <concepts>
#include <cstdint>
#include <functional>
#include <iterator>
#include <memory>
#include <optional>
#include <type_traits>
#include <utility>
#include <vector>

#include "trireme/core/export.hpp"
#include "trireme/data/sources/batch_share.hpp"
#include "trireme/data/sources/dataset.hpp"
#include "trireme/data/sources/dataset_sampler.hpp"

namespace trireme TRIREME_EXPORT {
namespace data {

// A source that is only read in order, such as a pipe, a cursor of a database or a queue: any type with a function
// std::optional<Item> next(), which returns nothing at the end.
template <typename S>
concept ItemStream = requires(S& stream) {
  *stream.next();
  { stream.next().has_value() } -> std::convertible_to<bool>;
};

// Which stream a StreamLoader opens.
struct StreamPart {
  std::uint64_t seed = 1;
  std::int64_t epoch = 0;
  int index = 0;  // of this stream among the `count` of an epoch
  int count = 1;
};

// A stream, or a function that opens one. Its call is const.
template <typename S>
concept StreamSource = ItemStream<S> || requires(const S& open, const StreamPart& part) {
  { open(part) } -> ItemStream;
};

struct StreamOptions {
  BatchOptions batch = {};
  std::int64_t epochs = 0;             // how often the streams are read before the data end; 0: they never end
  LastBatch last = LastBatch::filled;  // what remains of an epoch: filled up by the next epoch, or dropped
  int shards = 1;                      // streams of an epoch; they divide batch_size
  int workers = 1;                     // threads that read several streams at the same time; 0: all threads of this rank
  std::int64_t first_step = 0;         // whose samples the streams begin with
  // How many steps later than its successors a step may be loaded without opening a stream again, as threads of Prefetching do.
  std::int64_t kept_steps = 64;
};

namespace detail {

// A stream without the type of its items.
class OpenStream {
 public:
  using Items = std::shared_ptr<void>;  // a std::vector<Item>

  virtual ~OpenStream() = default;
  // Appends up to `count` items, or passes over them; returns how many: fewer only at the end.
  virtual std::int64_t read(std::int64_t count, Items& into) = 0;
  virtual std::int64_t skip(std::int64_t count) = 0;
};

// Reads this rank's samples of steps from streams that only go forwards.
class StreamSteps {
 public:
  using Open = std::function<std::unique_ptr<OpenStream>(const StreamPart& part)>;

  // `opens_again`: `open` may be called again for a part.
  StreamSteps(const StreamOptions& options, bool opens_again, Open open);
  ~StreamSteps();
  StreamSteps(const StreamSteps&) = delete;
  StreamSteps& operator=(const StreamSteps&) = delete;

  const BatchShare& share() const;
  bool has(std::int64_t step);
  std::vector<OpenStream::Items> take(std::int64_t step, std::int64_t micro_batch);  // one after the other

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

template <ItemStream S>
class TypedStream : public OpenStream {
 public:
  using Item = std::remove_cvref_t<decltype(*std::declval<S&>().next())>;

  explicit TypedStream(S stream) : stream_(std::move(stream)) {}

  std::int64_t read(std::int64_t count, Items& into) override {
    if (into == nullptr) into = std::make_shared<std::vector<Item>>();
    auto& items = *std::static_pointer_cast<std::vector<Item>>(into);
    for (std::int64_t done = 0; done < count; ++done) {
      auto item = stream_.next();
      if (!item.has_value()) return done;
      items.push_back(*std::move(item));
    }
    return count;
  }
  std::int64_t skip(std::int64_t count) override {
    if constexpr (requires { stream_.skip(count); }) {
      return stream_.skip(count);
    } else {
      for (std::int64_t done = 0; done < count; ++done) {
        if (!stream_.next().has_value()) return done;
      }
      return count;
    }
  }

 private:
  S stream_;
};

template <typename Source>
struct StreamOf {
  using type = std::remove_cvref_t<std::invoke_result_t<const Source&, const StreamPart&>>;
};
template <ItemStream Source>
struct StreamOf<Source> {
  using type = Source;
};

}  // namespace detail

// Reads this rank's micro-batches from sources of unknown length that are only read in order (PyTorch: IterableDataset).
//
//   struct Lines {
//     std::optional<std::string> next() {
//       std::string line;
//       return std::getline(*file, line) ? std::optional(line) : std::nullopt;
//     }
//     std::shared_ptr<std::istream> file;
//   };
//   const auto open = [](const data::StreamPart&) { return Lines{opened("corpus.txt")}; };
//   const data::StreamLoader lines(open, {.batch = run.batch()});
//
// The source is a function that opens a stream, or a stream. A function is called for each epoch, and again to go back. A
// stream is read once: it can't go back, and its end is an Error unless .epochs = 1.
//
// The samples of a step are the next batch_size items, on any number of ranks: each rank reads the whole stream and keeps its
// share. If the stream has a function std::int64_t skip(std::int64_t count), which passes over `count` items and returns how
// many there were, this is fast, and resuming a run is fast too. With `shards`, each stream gives batch_size / shards
// neighbouring samples of every step, and a rank opens only the streams that it needs. The order depends on the number of
// shards, but not on the number of ranks. A shard that ends begins its next epoch independently of the other shards.
//
// Load steps in ascending order. Loading a step again, or an earlier step, opens the streams again. Several threads may call
// load(), so Prefetching is possible. Only one thread reads at a time, and it reads a rank's share of a step as a whole. If
// next() throws, load() rethrows the exception, and the next call tries again; a stream that can't be opened again throws the
// same exception from then on.
//
// If the data end, the last step is the last step that is whole. has(step) reads up to this step and returns whether it exists.
// A Run ends after the last step that all ranks have. Loops by hand with several shards, or with streams that differ between
// ranks, must reduce has(step) over the ranks.
template <StreamSource Source, typename Collate = DefaultCollate>
class StreamLoader {
 public:
  using Stream = typename detail::StreamOf<Source>::type;
  using Item = typename detail::TypedStream<Stream>::Item;

  // Throws Error if ranks, micro-batches or shards can't share the batch equally, for batches of several sizes, and for more
  // than one shard or epoch of a stream that can't be opened again.
  explicit StreamLoader(Source source, const StreamOptions& options = {}, Collate collate = {})
      : steps_(std::make_shared<detail::StreamSteps>(options, !ItemStream<Source>, opening(std::move(source)))),
        collate_(std::move(collate)) {}

  std::int64_t num_micro_batches() const { return steps_->share().num_micro_batches(); }  // of a step
  std::int64_t batch_size() const { return steps_->share().batch_size(); }                // samples of a step, over all ranks
  std::int64_t samples_per_epoch() const { return 0; }                                    // unknown

  // Whether the streams of this rank hold this step. An exception of next() is kept for load().
  bool has(std::int64_t step) const { return steps_->has(step); }

  // Throws Error for a step or micro-batch that does not exist, and for a stream without items.
  auto load(std::int64_t step, std::int64_t micro_batch = 0) const {
    std::vector<Item> items;
    for (const auto& part : steps_->take(step, micro_batch)) {
      auto& more = *std::static_pointer_cast<std::vector<Item>>(part);
      if (items.empty()) {
        items = std::move(more);
      } else {
        items.insert(items.end(), std::make_move_iterator(more.begin()), std::make_move_iterator(more.end()));
      }
    }
    return collate_(std::move(items), steps_->share().first_sample(step, micro_batch));
  }

 private:
  static detail::StreamSteps::Open opening(Source source) {
    auto kept = std::make_shared<Source>(std::move(source));  // a stream may not be copyable
    return [kept](const StreamPart& part) -> std::unique_ptr<detail::OpenStream> {
      if constexpr (ItemStream<Source>) {
        return std::make_unique<detail::TypedStream<Stream>>(std::move(*kept));
      } else {
        return std::make_unique<detail::TypedStream<Stream>>(std::invoke(std::as_const(*kept), part));
      }
    };
  }

  std::shared_ptr<detail::StreamSteps> steps_;
  Collate collate_;
};

}  // namespace data
}  // namespace trireme
