#include <fmt/format.h>

#include <algorithm>
#include <exception>
#include <map>
#include <mutex>
#include <utility>

#include "trireme/core/error.hpp"
#include "trireme/data/loaders/stream_loader.hpp"

namespace trireme::data::detail {
namespace {

using Pieces = std::vector<OpenStream::Items>;  // one for each micro-batch; null where it has no samples of a shard

// What all shards of a rank have in common.
struct StreamRows {
  StreamOptions options;
  bool opens_again;
  StreamSteps::Open open;
  std::int64_t block;      // samples of a step that a shard gives
  std::int64_t first_row;  // of this rank in a step
  std::int64_t end_row;
  std::int64_t micro_batch_size;
  std::int64_t num_micro_batches;
};

// The streams of one shard, epoch after epoch: which items belong to a step.
class StreamShard {
 public:
  StreamShard(const StreamRows& rows, int index) : rows_(&rows), index_(index) { begin_anew(); }

  // This rank's samples of a step; nothing if the data end before it is whole. After an exception it begins anew.
  std::optional<Pieces> read(std::int64_t step) {
    if (end_ && step >= *end_) return std::nullopt;
    try {
      if (step < step_) begin_anew();
      return skip_to(step) ? read_step() : std::nullopt;
    } catch (...) {
      begin_anew();
      throw;
    }
  }

  std::optional<std::int64_t> end() const { return end_; }  // the first step that is not whole

 private:
  // Rows that are read for the same micro-batch, or are all passed over.
  struct Stretch {
    std::int64_t count;
    std::optional<std::size_t> micro_batch;
  };

  void begin_anew() {
    stream_.reset();
    part_ = {.seed = rows_->options.batch.seed, .epoch = 0, .index = index_, .count = rows_->options.shards};
    items_of_epoch_ = 0;
    step_ = rows_->options.first_step;
  }

  OpenStream& stream() {
    if (stream_ == nullptr) stream_ = rows_->open(part_);
    return *stream_;
  }

  Stretch stretch_at(std::int64_t row_of_block) const {
    const std::int64_t begin = index_ * rows_->block, row = begin + row_of_block, end = begin + rows_->block;
    if (row < rows_->first_row) return {rows_->first_row - row, std::nullopt};
    if (row >= rows_->end_row) return {end - row, std::nullopt};
    const std::int64_t micro_batch = (row - rows_->first_row) / rows_->micro_batch_size;
    const std::int64_t end_of_batch = rows_->first_row + (micro_batch + 1) * rows_->micro_batch_size;
    return {std::min(end, end_of_batch) - row, static_cast<std::size_t>(micro_batch)};
  }

  std::optional<Pieces> read_step() {
    const auto none = [this] { return Pieces(static_cast<std::size_t>(rows_->num_micro_batches)); };
    Pieces pieces = none();
    for (std::int64_t row = 0; row < rows_->block;) {
      const auto [count, micro_batch] = stretch_at(row);
      const std::int64_t done = micro_batch ? stream().read(count, pieces[*micro_batch]) : skip_items(count);
      row += done;
      items_of_epoch_ += done;
      if (done == count) continue;
      if (!next_epoch()) {
        end_ = step_;
        return std::nullopt;
      }
      if (rows_->options.last == LastBatch::filled) continue;
      pieces = none();
      row = 0;
    }
    ++step_;
    return pieces;
  }

  // False if the data end before.
  bool skip_to(std::int64_t step) {
    const std::int64_t items = (step - step_) * rows_->block;
    for (std::int64_t left = items; left > 0;) {
      const std::int64_t done = skip_items(left);
      items_of_epoch_ += done;
      left -= done;
      if (left == 0) break;
      if (rows_->options.last == LastBatch::dropped) left += items_of_epoch_ % rows_->block;
      if (!next_epoch()) {
        end_ = step_ + (items - left) / rows_->block;
        return false;
      }
    }
    step_ = step;
    return true;
  }

  std::int64_t skip_items(std::int64_t count) {
    const std::int64_t done = stream().skip(count);
    require(done >= 0 && done <= count, "skip({}) of a stream has passed over {} items", count, done);
    return done;
  }

  // False if this was the last epoch.
  bool next_epoch() {
    const std::int64_t items = items_of_epoch_;
    const StreamOptions& options = rows_->options;
    const auto words = [this] { return part_.count == 1 ? "the stream" : fmt::format("stream {} of {}", index_, part_.count); };
    require(items > 0, "{} has no items in epoch {}", words(), part_.epoch);
    if (options.epochs > 0 && part_.epoch + 1 == options.epochs) return false;
    if (!rows_->opens_again) {
      throw Error({.code = ErrorCode::invalid_argument,
                   .message = fmt::format("the stream has ended after {} items, and can't be opened again", items),
                   .hint = "give StreamLoader a function that opens it, or set StreamOptions::epochs to 1 to end there"});
    }
    require(options.last == LastBatch::filled || items >= rows_->block,
            "{} has {} items in epoch {}, and a step takes {}: all of them would be dropped; use LastBatch::filled", words(),
            items, part_.epoch, rows_->block);
    ++part_.epoch;
    items_of_epoch_ = 0;
    stream_.reset();
    return true;
  }

  const StreamRows* rows_;
  int index_;
  StreamPart part_;
  std::unique_ptr<OpenStream> stream_;
  std::int64_t items_of_epoch_ = 0;  // that were read
  std::int64_t step_ = 0;            // that comes next
  std::optional<std::int64_t> end_;
};

StreamRows rows_of(const StreamOptions& options, bool opens_again, StreamSteps::Open open, const BatchShare& share) {
  require(share.has_one_size(), "a stream needs one batch size: leave batch_size_from_step out");
  require(options.shards > 0 && share.batch_size() % options.shards == 0,
          "a batch of {} samples cannot be shared equally by {} streams; use a multiple of {}", share.batch_size(),
          options.shards, options.shards);
  require(options.epochs >= 0, "streams cannot be read {} times; 0 means without end", options.epochs);
  require(options.last != LastBatch::partial, "a stream has no smaller last batch: use LastBatch::filled or dropped");
  require(options.workers >= 0, "{} workers can read nothing; 0 means all threads of this rank", options.workers);
  require(options.first_step >= 0, "steps are numbered from 0: streams cannot begin with step {}", options.first_step);
  require(options.kept_steps >= 0, "{} steps cannot be kept", options.kept_steps);
  require(opens_again || (options.shards == 1 && options.epochs <= 1),
          "{} streams, {} times, cannot be read from one that is open: give StreamLoader a function that opens them",
          options.shards, options.epochs);
  const std::int64_t first_row = share.first_sample(0, 0);
  return {.options = options,
          .opens_again = opens_again,
          .open = std::move(open),
          .block = share.batch_size() / options.shards,
          .first_row = first_row,
          .end_row = first_row + share.micro_batch_size(0) * share.num_micro_batches(),
          .micro_batch_size = share.micro_batch_size(0),
          .num_micro_batches = share.num_micro_batches()};
}

}  // namespace

struct StreamSteps::Impl {
  Impl(const StreamOptions& all_options, bool opens_again, Open open)
      : share(all_options.batch),
        rows(rows_of(all_options, opens_again, std::move(open), share)),
        next(rows.options.first_step) {
    for (std::int64_t index = rows.first_row / rows.block; index * rows.block < rows.end_row; ++index)
      shards.emplace_back(rows, static_cast<int>(index));
  }
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;

  // By micro-batch, and by shard.
  struct Kept {
    std::vector<std::optional<Pieces>> micro_batches;
  };
  struct Failure {
    std::int64_t step;
    std::exception_ptr exception;
  };

  std::optional<Pieces> take_kept(std::int64_t step, std::int64_t micro_batch) {
    const auto found = kept.find(step);
    if (found == kept.end()) return std::nullopt;
    auto& all = found->second.micro_batches;
    std::optional<Pieces> taken = std::exchange(all[static_cast<std::size_t>(micro_batch)], std::nullopt);
    if (std::ranges::none_of(all, [](const auto& left) { return left.has_value(); })) kept.erase(found);
    return taken;
  }

  // Reads up to this step, and keeps what it reads. False if the data end before.
  bool reach(std::int64_t step) {
    if (step < next) {
      require(rows.opens_again,
              "step {} was read before, and the stream can't go back: give StreamLoader a function that opens it", step);
      kept.clear();
      next = step;
    } else if (step - next > rows.options.kept_steps) {
      next = step;
    }
    for (; next <= step; ++next) {
      if (end && next >= *end) return false;
      if (!read_next()) return false;
    }
    whole = std::max(whole, next);
    kept.erase(kept.begin(), kept.lower_bound(step - rows.options.kept_steps));
    return true;
  }

  bool read_next() {
    std::vector<std::optional<Pieces>> read(shards.size());
    for_each_item(std::ssize(shards), rows.options.workers, [&](std::int64_t shard) {
      const auto at = static_cast<std::size_t>(shard);
      read[at] = shards[at].read(next);
    });
    for (const StreamShard& shard : shards) {
      if (shard.end()) end = std::min(*shard.end(), end.value_or(*shard.end()));
    }
    if (end && next >= *end) return false;
    Kept& step = kept[next];
    step.micro_batches.assign(static_cast<std::size_t>(rows.num_micro_batches), Pieces());
    for (std::optional<Pieces>& of_shard : read) {
      for (std::size_t micro_batch = 0; micro_batch < of_shard->size(); ++micro_batch) {
        OpenStream::Items& items = (*of_shard)[micro_batch];
        if (items != nullptr) step.micro_batches[micro_batch]->push_back(std::move(items));
      }
    }
    return true;
  }

  bool has(std::int64_t step) {
    share.first_sample(step, 0);  // throws for a step that can't be counted
    if (rows.options.epochs == 0) return true;
    const std::scoped_lock lock(mutex);
    if (end && step >= *end) return false;
    if (step < whole || (failure && step >= failure->step)) return true;
    try {
      return reach(step);
    } catch (...) {
      failure = {next, std::current_exception()};
      return true;
    }
  }

  Pieces take(std::int64_t step, std::int64_t micro_batch) {
    share.first_sample(step, micro_batch);  // throws for those that do not exist
    require(step >= rows.options.first_step, "step {} is before the first one of the streams, {}", step,
            rows.options.first_step);
    const std::scoped_lock lock(mutex);
    if (auto pieces = take_kept(step, micro_batch)) return *std::move(pieces);
    if (failure && step >= failure->step) {
      const std::exception_ptr exception = failure->exception;
      if (rows.opens_again) failure.reset();
      std::rethrow_exception(exception);
    }
    bool is_whole = false;
    const bool goes_back = step < next;
    try {
      is_whole = reach(step);
    } catch (...) {
      if (!rows.opens_again && !goes_back) failure = {next, std::current_exception()};
      throw;
    }
    require(is_whole, "step {} does not exist: the data end with less than {} samples for step {}", step, share.batch_size(),
            end.value_or(step));
    return take_kept(step, micro_batch).value();
  }

  BatchShare share;
  StreamRows rows;
  std::vector<StreamShard> shards;  // those of this rank's rows
  std::mutex mutex;
  std::int64_t next;  // the step that is read next
  std::int64_t whole = 0;
  std::map<std::int64_t, Kept> kept;
  std::optional<std::int64_t> end;  // no whole step from there on
  std::optional<Failure> failure;
};

StreamSteps::StreamSteps(const StreamOptions& options, bool opens_again, Open open)
    : impl_(std::make_unique<Impl>(options, opens_again, std::move(open))) {}
StreamSteps::~StreamSteps() = default;

const BatchShare& StreamSteps::share() const { return impl_->share; }
bool StreamSteps::has(std::int64_t step) { return impl_->has(step); }
std::vector<OpenStream::Items> StreamSteps::take(std::int64_t step, std::int64_t micro_batch) {
  return impl_->take(step, micro_batch);
}

}  // namespace trireme::data::detail
