#include <arrow/api.h>
#include <fmt/format.h>
#include <parquet/arrow/reader.h>
#include <parquet/exception.h>

#include <algorithm>
#include <exception>
#include <limits>
#include <new>
#include <optional>
#include <set>
#include <string_view>
#include <type_traits>
#include <utility>

#include "data/shards/arrow_input.hpp"
#include "data/shards/parquet_file.hpp"
#include "trireme/core/error.hpp"

namespace trireme::data {
namespace {

[[noreturn]] void refuse_parquet(const Location& path, std::string message) {
  throw Error({.code = ErrorCode::corrupt_file,
               .message = std::move(message),
               .path = path.string(),
               .hint = "write the file again, or check that it is whole"});
}

// The kind of a column by its type; nothing if it is not read.
std::optional<ParquetKind> kind_of(const arrow::DataType& type) {
  switch (type.id()) {
    case arrow::Type::BOOL:
    case arrow::Type::INT8:
    case arrow::Type::INT16:
    case arrow::Type::INT32:
    case arrow::Type::INT64:
    case arrow::Type::UINT8:
    case arrow::Type::UINT16:
    case arrow::Type::UINT32:
    case arrow::Type::UINT64: return ParquetKind::integer;
    case arrow::Type::FLOAT:
    case arrow::Type::DOUBLE: return ParquetKind::number;
    case arrow::Type::STRING:
    case arrow::Type::LARGE_STRING:
    case arrow::Type::BINARY:
    case arrow::Type::LARGE_BINARY:
    case arrow::Type::FIXED_SIZE_BINARY: return ParquetKind::text;
    case arrow::Type::DICTIONARY: {
      const auto kind = kind_of(*static_cast<const arrow::DictionaryType&>(type).value_type());
      return kind == ParquetKind::text ? kind : std::nullopt;
    }
    case arrow::Type::LIST:
    case arrow::Type::LARGE_LIST:
    case arrow::Type::FIXED_SIZE_LIST: {
      const auto kind = kind_of(*type.field(0)->type());
      if (kind == ParquetKind::integer) return ParquetKind::integers;
      return kind == ParquetKind::number ? std::optional(ParquetKind::numbers) : std::nullopt;
    }
    default: return std::nullopt;
  }
}

// A column, by the fields that lead to it, and its leaves in the file.
struct PlacedColumn {
  std::string name;
  std::string type;
  std::optional<ParquetKind> kind;
  std::vector<int> path;
  int first_leaf;
  int num_leaves;
};

int leaves_of(const arrow::DataType& type) {
  if (type.num_fields() == 0) return 1;
  int leaves = 0;
  for (const auto& field : type.fields()) leaves += leaves_of(*field->type());
  return leaves;
}

// Fields of structs are columns of their own.
void place_columns(const arrow::Field& field, std::string name, std::vector<int> path, int& leaf,
                   std::vector<PlacedColumn>& into) {
  const arrow::DataType& type = *field.type();
  if (type.id() == arrow::Type::STRUCT && type.num_fields() > 0) {
    for (int child = 0; child < type.num_fields(); ++child) {
      path.push_back(child);
      place_columns(*type.field(child), name + "." + type.field(child)->name(), path, leaf, into);
      path.pop_back();
    }
    return;
  }
  const int leaves = leaves_of(type);
  into.push_back({.name = std::move(name),
                  .type = type.ToString(),
                  .kind = kind_of(type),
                  .path = std::move(path),
                  .first_leaf = leaf,
                  .num_leaves = leaves});
  leaf += leaves;
}

// Appends the elements of an array, 0 for nulls.
template <typename ArrowType, typename T>
void append_as(const arrow::Array& array, std::vector<T>& into) {
  const auto& typed = static_cast<const typename arrow::TypeTraits<ArrowType>::ArrayType&>(array);
  into.reserve(into.size() + static_cast<std::size_t>(typed.length()));
  for (std::int64_t item = 0; item < typed.length(); ++item) {
    if (typed.IsNull(item)) {
      into.push_back(T{});
      continue;
    }
    const auto value = typed.Value(item);
    if constexpr (std::is_same_v<ArrowType, arrow::UInt64Type>) {
      if (std::cmp_greater(value, std::numeric_limits<std::int64_t>::max()))
        throw parquet::ParquetException(fmt::format("the number {} does not fit into 63 bits", value));
    }
    into.push_back(static_cast<T>(value));
  }
}

void append_integers(const arrow::Array& array, std::vector<std::int64_t>& into) {
  switch (array.type_id()) {
    case arrow::Type::BOOL: return append_as<arrow::BooleanType>(array, into);
    case arrow::Type::INT8: return append_as<arrow::Int8Type>(array, into);
    case arrow::Type::INT16: return append_as<arrow::Int16Type>(array, into);
    case arrow::Type::INT32: return append_as<arrow::Int32Type>(array, into);
    case arrow::Type::INT64: return append_as<arrow::Int64Type>(array, into);
    case arrow::Type::UINT8: return append_as<arrow::UInt8Type>(array, into);
    case arrow::Type::UINT16: return append_as<arrow::UInt16Type>(array, into);
    case arrow::Type::UINT32: return append_as<arrow::UInt32Type>(array, into);
    default: return append_as<arrow::UInt64Type>(array, into);
  }
}

void append_numbers(const arrow::Array& array, std::vector<double>& into) {
  if (array.type_id() == arrow::Type::FLOAT) return append_as<arrow::FloatType>(array, into);
  append_as<arrow::DoubleType>(array, into);
}

std::string_view text_at(const arrow::Array& array, std::int64_t item) {
  switch (array.type_id()) {
    case arrow::Type::STRING:
    case arrow::Type::BINARY: return static_cast<const arrow::BinaryArray&>(array).GetView(item);
    case arrow::Type::LARGE_STRING:
    case arrow::Type::LARGE_BINARY: return static_cast<const arrow::LargeBinaryArray&>(array).GetView(item);
    case arrow::Type::DICTIONARY: {
      const auto& dictionary = static_cast<const arrow::DictionaryArray&>(array);
      return text_at(*dictionary.dictionary(), dictionary.GetValueIndex(item));
    }
    default: return static_cast<const arrow::FixedSizeBinaryArray&>(array).GetView(item);
  }
}

template <typename List, typename T>
void append_lists_as(const arrow::Array& array, std::vector<T>& elements, std::vector<std::int64_t>& ends,
                     void (*append)(const arrow::Array&, std::vector<T>&)) {
  const auto& list = static_cast<const List&>(array);
  std::int64_t end = ends.empty() ? 0 : ends.back();
  for (std::int64_t item = 0; item < list.length(); ++item) {
    if (!list.IsNull(item)) {
      const auto values = list.values()->Slice(list.value_offset(item), list.value_length(item));
      if (values->null_count() > 0) throw parquet::ParquetException("there is a null in a list");
      append(*values, elements);
      end += values->length();
    }
    ends.push_back(end);
  }
}

template <typename T>
void append_lists(const arrow::Array& array, std::vector<T>& elements, std::vector<std::int64_t>& ends,
                  void (*append)(const arrow::Array&, std::vector<T>&)) {
  switch (array.type_id()) {
    case arrow::Type::LIST: return append_lists_as<arrow::ListArray>(array, elements, ends, append);
    case arrow::Type::LARGE_LIST: return append_lists_as<arrow::LargeListArray>(array, elements, ends, append);
    default: return append_lists_as<arrow::FixedSizeListArray>(array, elements, ends, append);
  }
}

void append(const arrow::Array& array, ParquetKind kind, detail::ParquetValues& into) {
  for (std::int64_t item = 0; item < array.length(); ++item) into.nulls.push_back(array.IsNull(item));
  switch (kind) {
    case ParquetKind::integer: return append_integers(array, into.integers);
    case ParquetKind::number: return append_numbers(array, into.numbers);
    case ParquetKind::integers: return append_lists(array, into.integers, into.ends, append_integers);
    case ParquetKind::numbers: return append_lists(array, into.numbers, into.ends, append_numbers);
    case ParquetKind::text: break;
  }
  for (std::int64_t item = 0; item < array.length(); ++item) {
    if (!array.IsNull(item)) into.bytes += text_at(array, item);
    into.ends.push_back(std::ssize(into.bytes));
  }
}

std::int64_t bytes_of(const detail::ParquetValues& values) {
  return static_cast<std::int64_t>(8 * (values.integers.size() + values.numbers.size() + values.ends.size()) +
                                   values.bytes.size() + values.nulls.size() / 8);
}

// An open file, of one thread.
class ParquetFile {
 public:
  explicit ParquetFile(const Location& path) : path_(path), input_(std::make_shared<ArrowInput>(path)) {
    guarded([&] {
      parquet::arrow::FileReaderBuilder builder;
      check(builder.Open(input_));
      parquet::ArrowReaderProperties properties(false);
      properties.set_pre_buffer(false);  // would read on threads of Arrow
      builder.properties(properties);
      check(builder.Build(&reader_));
      std::shared_ptr<arrow::Schema> schema;
      check(reader_->GetSchema(&schema));
      int leaf = 0;
      for (int field = 0; field < schema->num_fields(); ++field)
        place_columns(*schema->field(field), schema->field(field)->name(), {field}, leaf, columns_);
    });
    std::set<std::string> names;
    for (const PlacedColumn& column : columns_) {
      if (!names.insert(column.name).second)
        refuse_parquet(path_, fmt::format("two columns have the name \"{}\"", column.name));
    }
  }

  ParquetFooter footer() {
    ParquetFooter footer;
    for (const PlacedColumn& column : columns_) {
      if (column.kind) {
        footer.columns.push_back({.name = column.name, .kind = *column.kind});
      } else {
        footer.others.push_back(column.name + ": " + column.type);
      }
    }
    guarded([&] {
      const auto metadata = reader_->parquet_reader()->metadata();
      for (int group = 0; group < metadata->num_row_groups(); ++group) {
        const std::int64_t rows = metadata->RowGroup(group)->num_rows();
        if (rows < 0) throw parquet::ParquetException(fmt::format("row group {} has {} rows", group, rows));
        footer.rows.push_back(rows);
      }
    });
    return footer;
  }

  detail::ParquetGroup read(std::int64_t number, std::span<const ParquetColumn> columns) {
    detail::ParquetGroup group;
    std::vector<const PlacedColumn*> placed;
    for (const ParquetColumn& column : columns) {
      const auto found = std::ranges::find(columns_, column.name, &PlacedColumn::name);
      if (found == columns_.end() || found->kind != column.kind) refuse_changed();
      placed.push_back(&*found);
    }
    guarded([&] {
      if (number >= reader_->num_row_groups()) refuse_changed();
      group.rows = reader_->parquet_reader()->metadata()->RowGroup(static_cast<int>(number))->num_rows();
      for (const PlacedColumn* column : placed) {
        detail::ParquetValues& values = group.columns.emplace_back();
        read_column(static_cast<int>(number), *column, values);
        if (std::ssize(values.nulls) != group.rows)
          throw parquet::ParquetException(
              fmt::format("the column \"{}\" has {} of {} rows", column->name, values.nulls.size(), group.rows));
        if (std::ranges::find(values.nulls, true) == values.nulls.end()) values.nulls = {};
        group.bytes += bytes_of(values);
      }
    });
    return group;
  }

 private:
  // One column at a time: only its Arrow form and ours are in memory.
  void read_column(int group, const PlacedColumn& column, detail::ParquetValues& into) {
    std::vector<int> leaves;
    for (int leaf = 0; leaf < column.num_leaves; ++leaf) leaves.push_back(column.first_leaf + leaf);
#if ARROW_VERSION_MAJOR >= 24
    auto read = reader_->ReadRowGroup(group, leaves);
    check(read.status());
    const std::shared_ptr<arrow::Table> table = *read;
#else
    std::shared_ptr<arrow::Table> table;
    check(reader_->ReadRowGroup(group, leaves, &table));
#endif
    if (table->num_columns() != 1) throw parquet::ParquetException("its columns differ from its schema");
    for (const std::shared_ptr<arrow::Array>& chunk : table->column(0)->chunks()) {
      std::shared_ptr<arrow::Array> array = chunk;
      // Of a struct only the field that leads to the column was read.
      for (std::size_t depth = 1; depth < column.path.size(); ++depth) {
        auto field = static_cast<const arrow::StructArray&>(*array).GetFlattenedField(0);
        check(field.status());
        array = *field;
      }
      if (kind_of(*array->type()) != column.kind) throw parquet::ParquetException("its columns differ from its schema");
      append(*array, *column.kind, into);
    }
  }

  [[noreturn]] void refuse_changed() const {
    refuse_parquet(path_, "the file is not the one that was opened: files may not change while they are read");
  }

  void check(const arrow::Status& status) const {
    if (status.ok()) return;
    input_->rethrow();
    if (status.IsOutOfMemory()) throw std::bad_alloc();
    throw parquet::ParquetException(status.message());
  }

  template <typename Action>
  void guarded(const Action& action) const {
    try {
      action();
    } catch (const Error&) {
      throw;
    } catch (const std::bad_alloc&) {
      throw Error({.code = ErrorCode::out_of_memory,
                   .message = "there is no memory for a row group of the Parquet file",
                   .path = path_.string(),
                   .hint = "write smaller row groups, or read fewer columns"});
    } catch (const std::exception& error) {  // of Parquet, or of the standard library for sizes that are wrong
      input_->rethrow();
      refuse_parquet(path_, fmt::format("the Parquet file cannot be read: {}", error.what()));
    }
  }

  Location path_;
  std::shared_ptr<ArrowInput> input_;
  std::unique_ptr<parquet::arrow::FileReader> reader_;
  std::vector<PlacedColumn> columns_;
};

}  // namespace

ParquetFooter read_parquet_footer(const Location& file) { return ParquetFile(file).footer(); }

detail::ParquetGroup read_parquet_group(const Location& file, std::int64_t group, std::span<const ParquetColumn> columns) {
  return ParquetFile(file).read(group, columns);
}

}  // namespace trireme::data
