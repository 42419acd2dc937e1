#include "trireme/data/tables/table.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "data/tables/standardization.hpp"
#include "trireme/core/error.hpp"
#include "trireme/data/sources/permutation.hpp"
#include "trireme/files/file_content.hpp"

namespace trireme::data {
namespace {

template <typename T>
void append_row(const std::vector<T>& from, std::int64_t row, std::int64_t width, std::vector<T>& to) {
  if (from.empty()) return;
  const auto first = from.begin() + row * width;
  to.insert(to.end(), first, first + width);
}

void check_columns(const TableContent& content) {
  std::size_t features = 0;
  for (const TableColumn& column : content.columns) features += std::max<std::size_t>(1, column.categories.size());
  require(features == content.feature_names.size(), "the columns have {} features, but the table has {}", features,
          content.feature_names.size());
}

void check_unrounded(const TableContent& content) {
  require(content.unrounded.size() == content.features.size(), "{} unrounded values for {} features", content.unrounded.size(),
          content.features.size());
  for (std::size_t i = 0; i < content.features.size(); ++i) {
    require(static_cast<float>(content.unrounded[i]) == content.features[i], "{} is not {} rounded to float",
            content.features[i], content.unrounded[i]);
  }
}

// The number of test rows among `rows` rows: at least one, and fewer than all.
std::int64_t num_test_rows(std::int64_t rows, double test) {
  return std::clamp<std::int64_t>(std::llround(test * static_cast<double>(rows)), 1, rows - 1);
}

}  // namespace

Table::Table(TableContent content) : size_(0) {
  const std::int64_t features = std::ssize(content.feature_names);
  require(features > 0, "a table without features");
  require(!content.features.empty() && std::ssize(content.features) % features == 0,
          "{} values are no rows of {} features; a table has at least one row", content.features.size(), features);
  size_ = std::ssize(content.features) / features;
  require(content.labels.empty() || std::ssize(content.labels) == size_, "{} labels for {} rows", content.labels.size(), size_);
  require(content.labels.empty() == content.class_names.empty(), "{} labels of {} classes", content.labels.size(),
          content.class_names.size());
  require(content.targets.empty() || std::ssize(content.targets) == size_, "{} targets for {} rows", content.targets.size(),
          size_);
  for (std::size_t i = 0; i < content.features.size(); ++i) {
    require(std::isfinite(content.features[i]), "the feature {} of row {} is {}",
            content.feature_names[i % content.feature_names.size()], i / content.feature_names.size(), content.features[i]);
  }
  for (std::size_t row = 0; row < content.targets.size(); ++row) {
    require(std::isfinite(content.targets[row]), "the target of row {} is {}", row, content.targets[row]);
  }
  for (std::size_t row = 0; row < content.labels.size(); ++row) {
    require(content.labels[row] >= 0 && std::cmp_less(content.labels[row], content.class_names.size()),
            "the label {} of row {} is none of the classes 0 to {}", content.labels[row], row, content.class_names.size() - 1);
  }
  if (!content.unrounded.empty()) check_unrounded(content);
  if (content.columns.empty()) {
    for (const std::string& name : content.feature_names) content.columns.push_back({.name = name});
  }
  check_columns(content);
  content_ = std::make_shared<const TableContent>(std::move(content));
}

Table Table::rows(std::span<const std::int64_t> indices) const {
  TableContent taken{
      .feature_names = content_->feature_names, .class_names = content_->class_names, .columns = content_->columns};
  taken.features.reserve(indices.size() * content_->feature_names.size());
  for (const std::int64_t index : indices) {
    append_row(content_->features, index, num_features(), taken.features);
    append_row(content_->labels, index, 1, taken.labels);
    append_row(content_->targets, index, 1, taken.targets);
    append_row(content_->unrounded, index, num_features(), taken.unrounded);
  }
  return Table(std::move(taken));
}

Rows Table::collate(std::span<const std::int64_t> indices, std::int64_t first_sample) const {
  const std::int64_t count = std::ssize(indices);
  Rows rows{.x = Tensor<float>({count, num_features()}), .first_sample = first_sample};
  if (!content_->labels.empty()) rows.labels = Tensor<std::int32_t>({count});
  if (!content_->targets.empty()) rows.targets = Tensor<float>({count, 1});
  for (std::int64_t row = 0; row < count; ++row) {
    const std::int64_t index = indices[static_cast<std::size_t>(row)];
    require(index >= 0 && index < size_, "row {} does not exist among {} rows", index, size_);
    const auto at = static_cast<std::size_t>(index);
    std::copy_n(content_->features.begin() + index * num_features(), num_features(), rows.x.data() + row * num_features());
    if (rows.labels.defined()) rows.labels.data()[row] = content_->labels[at];
    if (rows.targets.defined()) rows.targets.data()[row] = content_->targets[at];
  }
  return rows;
}

std::vector<std::int64_t> Table::rows_of_test(const SplitOptions& options) const {
  // Test rows still to draw, by class.
  std::vector<std::int64_t> left(static_cast<std::size_t>(std::max<std::int64_t>(1, num_classes())));
  if (!options.stratify) {
    left = {num_test_rows(size_, options.test)};
  } else {
    std::vector<std::int64_t> counts(left.size());
    for (const std::int32_t label : content_->labels) ++counts[static_cast<std::size_t>(label)];
    for (std::size_t label = 0; label < counts.size(); ++label) {
      require(counts[label] != 1, "the class {} has one row, which can't be in both tables; split without .stratify",
              content_->class_names[label]);
      left[label] = counts[label] == 0 ? 0 : num_test_rows(counts[label], options.test);
    }
  }
  const Permutation order(size_, options.seed, 0);
  std::vector<std::int64_t> test;
  for (std::int64_t place = 0; place < size_; ++place) {
    const auto row = static_cast<std::size_t>(order(place));
    std::int64_t& of_class = left[options.stratify ? static_cast<std::size_t>(content_->labels[row]) : 0];
    if (of_class == 0) continue;
    --of_class;
    test.push_back(place);
  }
  return test;
}

Table Table::part(std::int64_t begin, std::int64_t count) const {
  require(begin >= 0 && count > 0 && begin < size_ && count <= size_ - begin,
          "{} rows from row {} on are no part of {} rows; a table has at least one", count, begin, size_);
  std::vector<std::int64_t> indices(static_cast<std::size_t>(count));
  std::iota(indices.begin(), indices.end(), begin);
  return rows(indices);
}

TableSplit Table::shuffled_split(const SplitOptions& options) const {
  const std::vector<std::int64_t> places = rows_of_test(options);
  const Permutation order(size_, options.seed, 0);
  std::vector<std::int64_t> training;
  std::vector<std::int64_t> test;
  for (std::int64_t place = 0; place < size_; ++place) {
    (std::ranges::binary_search(places, place) ? test : training).push_back(order(place));
  }
  return {.training = rows(training), .test = rows(test)};
}

TableSplit Table::split(const SplitOptions& options) const {
  require(options.test > 0 && options.test < 1, "the part of the test rows, {}, does not lie in (0, 1)", options.test);
  require(size_ > 1, "a table of one row cannot be split");
  require(!options.stratify || num_classes() > 0, "a table without labels has no classes to stratify by");
  require(!options.stratify || options.shuffle, "rows in their order can't be stratified; set .shuffle or leave .stratify off");
  const std::int64_t num_test = num_test_rows(size_, options.test);
  TableSplit parts = options.shuffle
                         ? shuffled_split(options)
                         : TableSplit{.training = part(0, size_ - num_test), .test = part(size_ - num_test, num_test)};
  if (!options.standardize) return parts;
  const Standardization standardization = parts.training.standardization();
  return {.training = parts.training.standardized(standardization), .test = parts.test.standardized(standardization)};
}

double Table::value(std::int64_t at) const {
  const auto place = static_cast<std::size_t>(at);
  return content_->unrounded.empty() ? static_cast<double>(content_->features[place]) : content_->unrounded[place];
}

Standardization Table::standardization() const {
  Standardization result;
  const auto count = static_cast<double>(size_);
  for (std::int64_t feature = 0; feature < num_features(); ++feature) {
    const auto each = [&](const auto& visit) {
      for (std::int64_t at = feature; at < std::ssize(content_->features); at += num_features()) visit(value(at));
    };
    // Sums differences from the first value, which keeps precision where large numbers differ little.
    const double first = value(feature);
    double sum = 0;
    each([&](double value) { sum += value - first; });
    const double mean = first + sum / count;
    // Divides by the largest deviation, because the squares of tiny deviations underflow.
    double largest = 0;
    each([&](double value) { largest = std::max(largest, std::abs(value - mean)); });
    double squares = 0;
    if (largest > 0) each([&](double value) { squares += (value - mean) / largest * ((value - mean) / largest); });
    result.mean.push_back(mean);
    result.std.push_back(largest > 0 ? largest * std::sqrt(squares / count) : 1);
  }
  return result;
}

Table Table::standardized(const Standardization& standardization) const {
  check_standardization(standardization, num_features());
  TableContent content = *content_;
  for (std::size_t i = 0; i < content.features.size(); ++i) {
    const std::size_t feature = i % content.feature_names.size();
    content.features[i] = data::standardized(value(static_cast<std::int64_t>(i)), feature, standardization);
  }
  content.unrounded.clear();
  return Table(std::move(content));
}

std::string content_of(const Table& table) {
  const std::uint64_t features = digest_of_bytes(std::as_bytes(table.features()));
  const std::uint64_t labels = digest_of_bytes(std::as_bytes(table.labels()));
  const std::uint64_t targets = digest_of_bytes(std::as_bytes(table.targets()));
  return fmt::format("{} rows of {} features, digest {:016x}", table.size(), table.num_features(),
                     31 * (31 * features + labels) + targets);
}

}  // namespace trireme::data
