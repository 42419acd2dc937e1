#include "trireme/data/shards/csv_rows.hpp"

#include <fmt/format.h>

#include <cmath>
#include <optional>
#include <utility>

#include "data/shards/csv_summary.hpp"
#include "data/shards/shard_index.hpp"
#include "data/tables/csv_layout.hpp"
#include "data/tables/standardization.hpp"
#include "trireme/core/error.hpp"
#include "trireme/files/file_content.hpp"

namespace trireme::data {
namespace {

constexpr std::int64_t rows_of_block = 8;  // of which the index has the first one's place
constexpr std::int64_t most_different = 1'000'000;

std::uint64_t digest_of_text(std::string_view text) { return digest_of_bytes(std::as_bytes(std::span(text))); }

ShardIndex index_of_rows(const RangedFile& file, const CsvOptions& options) {
  ShardIndex index;
  const CsvColumns columns =
      learn_csv(file, options, most_different, [&](const CsvColumns&, std::span<const CsvValue>, std::uint64_t byte) {
        if (index.count++ % rows_of_block != 0) return;
        index.offsets.push_back(static_cast<std::int64_t>(byte));
      });
  index.offsets.push_back(static_cast<std::int64_t>(file.size()));
  index.learnt = summary_of(columns);
  return index;
}

bool has_offsets_of_rows(const ShardIndex& index) {
  return std::ssize(index.offsets) == (index.count + rows_of_block - 1) / rows_of_block + 1;
}

}  // namespace

struct CsvRows::State : IndexedShards {
  State(std::vector<Location> locations, const CsvRowsOptions& options, const CsvLike* like)
      : IndexedShards(
            std::move(locations), options.workers,
            fmt::format("rows of a CSV file, options {:016x}", digest_of_text(text_of_options(options.csv))),
            [&](const ShardIndex& index) {
              return has_offsets_of_rows(index) && columns_in(index.learnt, index.count, options.csv, {}).has_value();
            },
            [&](const RangedFile& file, const Location&) { return index_of_rows(file, options.csv); }),
        columns(all_columns(options.csv)),
        layout(columns, like) {}

  // What all files say together.
  CsvColumns all_columns(const CsvOptions& options) {
    std::optional<CsvColumns> all;
    for (std::size_t number = 0; number < shards.size(); ++number) {
      const ShardIndex& index = shards[number].index;
      std::optional<CsvColumns> of_file = columns_in(index.learnt, index.count, options, files.locations()[number].string());
      if (!of_file) refuse_other_shard(files.locations()[number], 0);
      if (all) {
        all->learn(*of_file);
      } else {
        all = std::move(of_file);
      }
    }
    if (shards.size() > 1) all->path = fmt::format("{} and {} other files", all->path, shards.size() - 1);
    all->require_rows();
    for (const CsvColumn& column : all->all()) {
      if (column.categories.size() > most_different) all->refuse_many_categories(column, most_different);
    }
    return *std::move(all);
  }

  CsvColumns columns;
  CsvLayout layout;
};

namespace {

// Reads rows one by one. Goes on in a block where the next row is a later one of the same block.
class CsvBlockReader {
 public:
  CsvBlockReader(const IndexedShards& shards, const CsvColumns& columns) : shards_(shards), columns_(columns) {}

  // Valid until the next call.
  std::span<const CsvValue> row(std::int64_t index) {
    const auto [shard, place] = shards_.place_of(index);
    const std::int64_t block = place / rows_of_block;
    if (!records_ || shard != shard_ || block != block_ || place < next_) open(shard, block);
    if (!read_to(place)) refuse_other_shard(shards_.files.locations()[shard], records_->byte());
    return values_;
  }

 private:
  void open(std::size_t shard, std::int64_t block) {
    const std::vector<std::int64_t>& offsets = shards_.shards[shard].index.offsets;
    const auto at = static_cast<std::size_t>(block);
    const auto begin = static_cast<std::uint64_t>(offsets[at]);
    const auto count = static_cast<std::size_t>(offsets[at + 1] - offsets[at]);
    memory_ = shards_.files.file(shard)->range(begin, count);
    const std::string_view text(reinterpret_cast<const char*>(memory_.get()), count);
    records_.emplace(text, columns_.options().separator, shards_.files.locations()[shard], CsvPosition{.byte = begin});
    shard_ = shard;
    block_ = block;
    next_ = block * rows_of_block;
  }

  // False: there is another row than the one that was indexed.
  bool read_to(std::int64_t place) {
    try {
      while (next_ <= place) {
        if (!records_->next()) return false;
        if (columns_.is_row(*records_)) ++next_;
      }
      columns_.parse(*records_, values_);
      return columns_.find(values_);
    } catch (const Error&) {
      return false;
    }
  }

  const IndexedShards& shards_;
  const CsvColumns& columns_;
  std::size_t shard_ = 0;
  std::int64_t block_ = 0;
  std::int64_t next_ = 0;  // the row of the shard that records_ comes to
  std::shared_ptr<const std::byte> memory_;
  std::optional<CsvRecords> records_;
  std::vector<CsvValue> values_;
};

}  // namespace

CsvRows::CsvRows(std::vector<Location> files, const CsvRowsOptions& options, const CsvRows* like) {
  check_csv_options(options.csv);
  if (like == nullptr) {
    state_ = std::make_shared<const State>(std::move(files), options, nullptr);
  } else {
    const CsvLike of_first{.columns = like->columns(), .class_names = like->class_names()};
    state_ = std::make_shared<const State>(std::move(files), options, &of_first);
  }
}

CsvRows::CsvRows(std::vector<Location> files, const CsvRowsOptions& options) : CsvRows(std::move(files), options, nullptr) {}

CsvRows::CsvRows(std::vector<Location> files, const CsvRowsOptions& options, const CsvRows& like)
    : CsvRows(std::move(files), options, &like) {}

std::int64_t CsvRows::size() const { return state_->size(); }
const std::vector<std::string>& CsvRows::feature_names() const { return state_->layout.feature_names(); }
const std::vector<std::string>& CsvRows::class_names() const { return state_->layout.class_names(); }
const std::vector<TableColumn>& CsvRows::columns() const { return state_->layout.columns(); }
const std::vector<Location>& CsvRows::files() const { return state_->files.locations(); }

Rows CsvRows::at(std::int64_t index) const { return collate({&index, 1}, index); }

Rows CsvRows::collate(std::span<const std::int64_t> indices, std::int64_t first_sample) const {
  const CsvLayout& layout = state_->layout;
  const std::int64_t count = std::ssize(indices);
  Rows rows{.x = Tensor<float>({count, num_features()}), .first_sample = first_sample};
  if (layout.label()) rows.labels = Tensor<std::int32_t>({count});
  if (layout.target()) rows.targets = Tensor<float>({count, 1});
  CsvBlockReader reader(*state_, state_->columns);
  std::vector<double> features(layout.width());
  for (std::int64_t row = 0; row < count; ++row) {
    const std::int64_t index = indices[static_cast<std::size_t>(row)];
    const std::span<const CsvValue> values = reader.row(index);
    layout.write(values, features);
    float* const x = rows.x.data() + row * num_features();
    for (std::size_t i = 0; i < features.size(); ++i) {
      x[i] = standardization_ ? data::standardized(features[i], i, *standardization_) : static_cast<float>(features[i]);
      require(std::isfinite(x[i]), "the feature {} of row {} is {}", feature_names()[i], index, x[i]);
    }
    if (layout.label()) rows.labels.data()[row] = layout.class_of(values);
    if (layout.target()) rows.targets.data()[row] = static_cast<float>(values[*layout.target()].number);
  }
  return rows;
}

Standardization CsvRows::standardization() const { return state_->layout.standardization(state_->columns); }

CsvRows CsvRows::standardized(const Standardization& standardization) const {
  require(standardization_ == nullptr, "the rows are standardized already");
  check_standardization(standardization, num_features());
  CsvRows result = *this;
  result.standardization_ = std::make_shared<const Standardization>(standardization);
  return result;
}

void CsvRows::write_index() const { state_->write_index(); }

std::string content_of(const CsvRows& rows) {
  std::uint64_t digest = 31 * rows.state_->digest() + digest_of_text(rows.state_->kind);
  for (const std::string& name : rows.feature_names()) digest = 31 * digest + digest_of_text(name);
  for (const std::string& name : rows.class_names()) digest = 31 * digest + digest_of_text(name);
  if (rows.standardization_) {
    for (const auto& numbers : {std::span(rows.standardization_->mean), std::span(rows.standardization_->std)}) {
      digest = 31 * digest + digest_of_bytes(std::as_bytes(numbers));
    }
  }
  return fmt::format("{} rows of {} features in {} files, digest {:016x}", rows.size(), rows.num_features(),
                     rows.files().size(), digest);
}

}  // namespace trireme::data
