#include "trireme/data/shards/parquet_rows.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <functional>
#include <limits>
#include <map>
#include <mutex>
#include <utility>

#include "data/shards/parquet_file.hpp"
#include "data/shards/shard_index.hpp"
#include "trireme/core/error.hpp"
#include "trireme/data/sources/dataset.hpp"
#include "trireme/files/file_content.hpp"

namespace trireme::data {
namespace {

std::string_view name_of(ParquetKind kind) {
  switch (kind) {
    case ParquetKind::integer: return "integers";
    case ParquetKind::number: return "numbers";
    case ParquetKind::text: return "texts";
    case ParquetKind::integers: return "lists of integers";
    case ParquetKind::numbers: return "lists of numbers";
  }
  return "";
}

std::string names_of(const std::vector<ParquetColumn>& columns) {
  std::string names;
  for (const ParquetColumn& column : columns) names += (names.empty() ? "" : ", ") + column.name;
  return names.empty() ? "none" : names;
}

// The column of this name that a file has; throws if it has none of a kind that can be read.
ParquetColumn find_column(const ParquetFooter& footer, const std::string& name, const Location& file) {
  const auto found = std::ranges::find(footer.columns, name, &ParquetColumn::name);
  if (found != footer.columns.end()) return *found;
  const std::string prefix = name + ": ";
  const auto other = std::ranges::find_if(footer.others, [&](const std::string& text) { return text.starts_with(prefix); });
  throw Error({.code = ErrorCode::corrupt_file,
               .message = other == footer.others.end() ? fmt::format("there is no column \"{}\"", name)
                                                       : fmt::format("the column \"{}\" has a type that is not read, {}", name,
                                                                     other->substr(prefix.size())),
               .path = file.string(),
               .wanted = "a column of numbers, texts, or lists of numbers",
               .had = names_of(footer.columns)});
}

// The row groups that were used last.
class GroupCache {
 public:
  using Group = std::shared_ptr<const detail::ParquetGroup>;

  explicit GroupCache(std::int64_t most_bytes) : most_bytes_(most_bytes) {
    require(most_bytes >= 0, "{} bytes of row groups cannot be kept", most_bytes);
  }

  // Of threads that ask for the same group at the same time, one decodes it.
  Group get(std::size_t index, const std::function<detail::ParquetGroup()>& decode) {
    const std::shared_ptr<Slot> slot = use(index);
    const std::scoped_lock lock(slot->mutex);
    if (slot->group == nullptr) {
      slot->group = std::make_shared<const detail::ParquetGroup>(decode());
      count(index, *slot);
    }
    return slot->group;
  }

 private:
  struct Slot {
    std::mutex mutex;
    Group group;
  };
  struct Entry {
    std::shared_ptr<Slot> slot;
    std::int64_t bytes = 0;  // 0 until it is decoded
  };

  std::shared_ptr<Slot> use(std::size_t index) {
    const std::scoped_lock lock(mutex_);
    std::erase(recent_, index);
    recent_.push_back(index);
    Entry& entry = entries_[index];
    if (entry.slot == nullptr) entry.slot = std::make_shared<Slot>();
    return entry.slot;
  }

  // Forgets the oldest ones for it.
  void count(std::size_t index, const Slot& slot) {
    const std::scoped_lock lock(mutex_);
    const auto found = entries_.find(index);
    if (found == entries_.end() || found->second.slot.get() != &slot) return;  // forgotten while it was decoded
    found->second.bytes = slot.group->bytes;
    bytes_ += slot.group->bytes;
    while (bytes_ > most_bytes_ && recent_.size() > 1) {
      const auto oldest = entries_.find(recent_.front());
      bytes_ -= oldest->second.bytes;
      entries_.erase(oldest);
      recent_.pop_front();
    }
  }

  std::int64_t most_bytes_;
  std::mutex mutex_;
  std::map<std::size_t, Entry> entries_;
  std::deque<std::size_t> recent_;  // the last one was used last
  std::int64_t bytes_ = 0;
};

}  // namespace

struct detail::ParquetState {
  struct Group {
    std::size_t file;
    std::int64_t number;  // in the file
    std::int64_t rows;
    std::int64_t first;  // row in the file
  };

  ParquetState(std::vector<Location> locations, const ParquetOptions& options)
      : files(std::move(locations)), workers(options.workers), cache(options.cached_bytes) {
    require(!files.empty(), "no files are named");
    std::vector<ParquetFooter> footers(files.size());
    for_each_item(std::ssize(files), workers, [&](std::int64_t file) {
      footers[static_cast<std::size_t>(file)] = read_parquet_footer(files[static_cast<std::size_t>(file)]);
    });
    if (options.columns.empty()) columns = footers.front().columns;
    if (options.columns.empty() && columns.empty()) {
      throw Error({.code = ErrorCode::corrupt_file,
                   .message = "none of the columns has a type that is read",
                   .path = files.front().string(),
                   .wanted = "columns of numbers, texts, or lists of numbers"});
    }
    for (const std::string& name : options.columns) columns.push_back(find_column(footers.front(), name, files.front()));
    for (std::size_t file = 0; file < files.size(); ++file) {
      require_columns(footers[file], files[file]);
      std::int64_t begin = 0;  // in the file
      for (std::size_t number = 0; number < footers[file].rows.size(); ++number) {
        const std::int64_t rows = footers[file].rows[number];
        if (rows == 0) continue;
        groups.push_back({.file = file, .number = static_cast<std::int64_t>(number), .rows = rows, .first = begin});
        std::int64_t end = 0;
        require(!__builtin_add_overflow(first.back(), rows, &end), "the rows of the files cannot be counted");
        first.push_back(end);
        begin += rows;
        most_rows = std::max(most_rows, rows);
      }
    }
  }

  void require_columns(const ParquetFooter& footer, const Location& file) const {
    for (const ParquetColumn& column : columns) {
      const ParquetColumn found = find_column(footer, column.name, file);
      if (found.kind == column.kind) continue;
      throw Error({.code = ErrorCode::corrupt_file,
                   .message = fmt::format("the column \"{}\" has {}, and {} in {}", column.name, name_of(found.kind),
                                          name_of(column.kind), files.front()),
                   .path = file.string(),
                   .hint = "write the files with one schema"});
    }
  }

  std::size_t group_of(std::int64_t row) const {
    require(row >= 0 && row < first.back(), "row {} does not exist among {}", row, first.back());
    return static_cast<std::size_t>(std::ranges::upper_bound(first, row) - first.begin() - 1);
  }

  std::shared_ptr<const ParquetGroup> decoded(std::size_t index) const {
    return cache.get(index, [&] {
      const auto& [file, number, rows, begin] = groups[index];
      ParquetGroup group = read_parquet_group(files[file], number, columns);
      if (group.rows != rows) {
        throw Error(
            {.code = ErrorCode::corrupt_file,
             .message = fmt::format("row group {} has {} rows, and {} when the file was opened", number, group.rows, rows),
             .path = files[file].string(),
             .hint = "files may not change while they are read"});
      }
      return group;
    });
  }

  std::vector<Location> files;
  int workers;
  std::vector<ParquetColumn> columns = {};
  std::vector<Group> groups = {};
  std::vector<std::int64_t> first{0};  // row of each group, and how many there are
  std::int64_t most_rows = 1;
  mutable GroupCache cache;
};

struct ParquetRow::Cell {
  const detail::ParquetValues* values;
  std::size_t row;
  ParquetKind kind;

  bool is_null() const { return !values->nulls.empty() && values->nulls[row]; }

  template <typename T>
  std::span<const T> of(const T* all) const {
    const std::int64_t begin = row == 0 ? 0 : values->ends[row - 1];
    return {all + begin, static_cast<std::size_t>(values->ends[row] - begin)};
  }
};

ParquetRow::Cell ParquetRow::cell(std::string_view column) const {
  const auto found = std::ranges::find(state_->columns, column, &ParquetColumn::name);
  require(found != state_->columns.end(), "the column \"{}\" is not read: those that are, are {}", column,
          names_of(state_->columns));
  const auto number = static_cast<std::size_t>(found - state_->columns.begin());
  return {.values = &group_->columns[number],
          .row = static_cast<std::size_t>(row_ - state_->first[group_index_]),
          .kind = found->kind};
}

ParquetRow::Cell ParquetRow::value(std::string_view column, ParquetKind kind) const {
  const Cell found = cell(column);
  const bool is_number = kind == ParquetKind::number && found.kind == ParquetKind::integer;
  require(found.kind == kind || is_number, "the column \"{}\" has {}, not {}", column, name_of(found.kind), name_of(kind));
  if (!found.is_null()) return found;
  const auto& group = state_->groups[group_index_];
  throw Error({.code = ErrorCode::corrupt_file,
               .message = fmt::format("row {} has no value in the column \"{}\"",
                                      group.first + static_cast<std::int64_t>(found.row), column),
               .path = state_->files[group.file].string(),
               .hint = "ask is_null() before, or write a value there"});
}

std::string_view ParquetRow::text(std::string_view column) const {
  const Cell found = value(column, ParquetKind::text);
  const auto bytes = found.of(found.values->bytes.data());
  return {bytes.data(), bytes.size()};
}

std::int64_t ParquetRow::integer(std::string_view column) const {
  const Cell found = value(column, ParquetKind::integer);
  return found.values->integers[found.row];
}

double ParquetRow::number(std::string_view column) const {
  const Cell found = value(column, ParquetKind::number);
  return found.kind == ParquetKind::integer ? static_cast<double>(found.values->integers[found.row])
                                            : found.values->numbers[found.row];
}

std::span<const std::int64_t> ParquetRow::integers(std::string_view column) const {
  const Cell found = value(column, ParquetKind::integers);
  return found.of(found.values->integers.data());
}

std::span<const double> ParquetRow::numbers(std::string_view column) const {
  const Cell found = value(column, ParquetKind::numbers);
  return found.of(found.values->numbers.data());
}

bool ParquetRow::is_null(std::string_view column) const { return cell(column).is_null(); }

ParquetRows::ParquetRows(std::vector<Location> files, const ParquetOptions& options)
    : state_(std::make_shared<const detail::ParquetState>(std::move(files), options)) {}

std::int64_t ParquetRows::size() const { return state_->first.back(); }
std::int64_t ParquetRows::neighbours() const { return state_->most_rows; }
const std::vector<ParquetColumn>& ParquetRows::columns() const { return state_->columns; }
const std::vector<Location>& ParquetRows::files() const { return state_->files; }

ParquetRow ParquetRows::at(std::int64_t index) const {
  ParquetRow row;
  row.state_ = state_;
  row.group_index_ = state_->group_of(index);
  row.group_ = state_->decoded(row.group_index_);
  row.row_ = index;
  return row;
}

std::string content_of(const ParquetRows& rows) {
  const detail::ParquetState& state = *rows.state_;
  std::vector<std::uint64_t> digests(state.files.size());
  for_each_item(std::ssize(digests), state.workers, [&](std::int64_t file) {
    digests[static_cast<std::size_t>(file)] = digest_of_ends(RangedFile(state.files[static_cast<std::size_t>(file)]));
  });
  return fmt::format("{} of {} rows in {} files, digest {:016x}", names_of(state.columns), rows.size(), digests.size(),
                     digest_of_bytes(std::as_bytes(std::span(digests))));
}

ParquetTable::ParquetTable(ParquetRows rows, const ParquetTableOptions& options) : rows_(std::move(rows)), options_(options) {
  const std::vector<ParquetColumn>& columns = rows_.columns();
  const auto is_numeric = [](const ParquetColumn& column) { return column.kind <= ParquetKind::number; };
  if (options_.features.empty()) {
    for (const ParquetColumn& column : columns) {
      if (is_numeric(column) && column.name != options_.label && column.name != options_.target)
        options_.features.push_back(column.name);
    }
  }
  require(!options_.features.empty(), "there are no columns of numbers to train on: those that are read, are {}",
          names_of(columns));
  const auto check = [&](const std::string& name, bool of_integers) {
    const auto found = std::ranges::find(columns, name, &ParquetColumn::name);
    require(found != columns.end(), "the column \"{}\" is not read: those that are, are {}", name, names_of(columns));
    require(of_integers ? found->kind == ParquetKind::integer : is_numeric(*found), "the column \"{}\" has {}, not {}", name,
            name_of(found->kind), of_integers ? "numbers of classes" : "numbers");
  };
  for (const std::string& name : options_.features) check(name, false);
  if (!options_.label.empty()) check(options_.label, true);
  if (!options_.target.empty()) check(options_.target, false);
}

Rows ParquetTable::collate(std::span<const std::int64_t> indices, std::int64_t first_sample) const {
  const auto count = std::ssize(indices), width = std::ssize(options_.features);
  Rows batch{.x = Tensor<float>({count, width}), .first_sample = first_sample};
  if (!options_.label.empty()) batch.labels = Tensor<std::int32_t>({count});
  if (!options_.target.empty()) batch.targets = Tensor<float>({count, 1});
  for (std::int64_t item = 0; item < count; ++item) {
    const std::int64_t index = indices[static_cast<std::size_t>(item)];
    const ParquetRow row = rows_.at(index);
    float* x = batch.x.data() + item * width;
    for (const std::string& name : options_.features) *x++ = static_cast<float>(row.number(name));
    if (!options_.target.empty()) batch.targets.data()[item] = static_cast<float>(row.number(options_.target));
    if (options_.label.empty()) continue;
    const std::int64_t label = row.integer(options_.label);
    require(label >= 0 && label <= std::numeric_limits<std::int32_t>::max(),
            "row {} has the label {}: classes are numbered from 0", index, label);
    batch.labels.data()[item] = static_cast<std::int32_t>(label);
  }
  return batch;
}

std::string content_of(const ParquetTable& table) { return content_of(table.rows()); }

}  // namespace trireme::data
