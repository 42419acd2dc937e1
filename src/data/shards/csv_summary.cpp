#include "data/shards/csv_summary.hpp"

#include <bit>
#include <cmath>
#include <cstring>
#include <utility>

#include "trireme/core/error.hpp"

namespace trireme::data {
namespace {

// Whole numbers, doubles and texts behind each other. A text begins with its length.
class SummaryWriter {
 public:
  void add(std::int64_t number) { bytes_.append(reinterpret_cast<const char*>(&number), sizeof number); }
  void add(double number) { add(std::bit_cast<std::int64_t>(number)); }
  void add(std::string_view text) {
    add(static_cast<std::int64_t>(text.size()));
    bytes_ += text;
  }
  void add(const std::vector<std::string>& texts) {
    add(std::ssize(texts));
    for (const std::string& text : texts) add(std::string_view(text));
  }
  std::string take() { return std::move(bytes_); }

 private:
  std::string bytes_;
};

// Throws Error where the bytes end early.
class SummaryReader {
 public:
  explicit SummaryReader(std::string_view bytes) : rest_(bytes) {}

  std::int64_t number() {
    std::int64_t number = 0;
    std::memcpy(&number, bytes(sizeof number).data(), sizeof number);
    return number;
  }
  std::int64_t count(std::int64_t most) {
    const std::int64_t count = number();
    require(count >= 0 && count <= most, "{} is no count up to {}", count, most);
    return count;
  }
  double finite_number() {
    const double number = std::bit_cast<double>(this->number());
    require(std::isfinite(number), "{} is not finite", number);
    return number;
  }
  std::string_view text() { return bytes(static_cast<std::size_t>(count(left()))); }
  std::int64_t left() const { return std::ssize(rest_); }

 private:
  std::string_view bytes(std::size_t count) {
    require(count <= rest_.size(), "{} bytes are left, {} are needed", rest_.size(), count);
    const std::string_view taken = rest_.substr(0, count);
    rest_.remove_prefix(count);
    return taken;
  }
  std::string_view rest_;
};

CsvNumbers numbers_in(SummaryReader& bytes, std::int64_t rows) {
  CsvNumbers numbers;
  numbers.count = bytes.count(rows);
  numbers.first = bytes.finite_number();
  numbers.sum = bytes.finite_number();
  numbers.squares = bytes.finite_number();
  if (numbers.count == 0) {
    require(numbers == CsvNumbers(), "there are sums of no numbers");
  } else {
    require(std::isfinite(static_cast<float>(numbers.mean())) && numbers.squares >= 0, "these are no sums");
  }
  return numbers;
}

}  // namespace

std::string summary_of(const CsvColumns& columns) {
  SummaryWriter bytes;
  bytes.add(columns.rows_dropped);
  bytes.add(std::ssize(columns.all()));
  for (const CsvColumn& column : columns.all()) bytes.add(std::string_view(column.name));
  for (const CsvColumn& column : columns.all()) {
    bytes.add(column.numbers.count);
    bytes.add(column.numbers.first);
    bytes.add(column.numbers.sum);
    bytes.add(column.numbers.squares);
    const std::vector<std::string_view> values = column.categories.values();
    bytes.add(std::ssize(values));
    for (std::size_t value = 0; value < values.size(); ++value) {
      bytes.add(values[value]);
      bytes.add(column.categories.counts()[value]);
    }
  }
  return bytes.take();
}

std::optional<CsvColumns> columns_in(std::string_view summary, std::int64_t rows, const CsvOptions& options,
                                     const std::string& path) {
  try {
    SummaryReader bytes(summary);
    const std::int64_t dropped = bytes.count(std::numeric_limits<std::int64_t>::max() / 2);
    std::vector<std::string> names(static_cast<std::size_t>(bytes.count(bytes.left())));
    for (std::string& name : names) name = bytes.text();
    CsvColumns columns(names, options, path);
    columns.rows = rows;
    columns.rows_dropped = dropped;
    for (CsvColumn& column : columns.all()) {
      column.numbers = numbers_in(bytes, rows);
      const std::int64_t different = bytes.count(rows);
      std::int64_t counted = 0;
      for (std::int64_t value = 0; value < different; ++value) {
        const std::string_view text = bytes.text();
        const std::int64_t times = bytes.count(rows - counted);
        require(times > 0 && column.categories.add(text, times) == value, "a value is counted twice");
        counted += times;
      }
      require(counted == (column.has_categories() ? rows : 0), "{} rows have categories", counted);
      const bool has_all = column.role != ColumnRole::number || options.missing != MissingValues::filled_by_mean;
      const bool has_numbers = column.role == ColumnRole::number || column.role == ColumnRole::target;
      require(has_numbers ? !has_all || column.numbers.count == rows : column.numbers.count == 0, "{} numbers of {} rows",
              column.numbers.count, rows);
    }
    require(bytes.left() == 0, "{} bytes are left", bytes.left());
    return columns;
  } catch (const Error&) {
    return std::nullopt;
  }
}

std::string text_of_options(const CsvOptions& options) {
  SummaryWriter text;
  text.add(std::string_view(options.label));
  text.add(std::string_view(options.target));
  text.add(options.categories);
  text.add(options.ignored);
  text.add(options.missing_values);
  for (const std::int64_t number : {std::int64_t{options.separator}, std::int64_t{options.decimal}, options.skipped_lines,
                                    std::int64_t{options.header}, static_cast<std::int64_t>(options.missing)}) {
    text.add(number);
  }
  return text.take();
}

}  // namespace trireme::data
