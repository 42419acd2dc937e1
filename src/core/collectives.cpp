#include "trireme/core/collectives.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <exception>
#include <new>
#include <utility>

#include "trireme/core/error.hpp"

namespace trireme {
namespace {

thread_local const char* without_collectives = nullptr;  // set while WithoutCollectives exists: its `where`

constexpr std::size_t most_elements = std::size_t{1} << 56;  // so that bytes and parts can be computed without overflow
constexpr std::int64_t block = 16;                           // parts begin at multiples of this

bool is_message(CallKind kind) { return kind == CallKind::send || kind == CallKind::receive; }

bool has_arithmetic(DType dtype) {
  switch (dtype) {
    case DType::float32:
    case DType::float64:
    case DType::bfloat16:
    case DType::float16:
    case DType::int32:
    case DType::int64:
    case DType::uint64: return true;
    default: return false;
  }
}

void require_peer(int peer, int size, std::string_view operation) {
  require(peer >= 0 && peer < size, "{} names rank {}, but the group has ranks 0 to {}", operation, peer, size - 1);
}

void check(const Call& call, int size) {
  if ((call.kind == CallKind::all_reduce || call.kind == CallKind::reduce_scatter) && !has_arithmetic(call.dtype)) {
    throw Error({.code = ErrorCode::invalid_argument,
                 .message = fmt::format("{} has no arithmetic for {}", name_of(call.kind), name_of(call.dtype)),
                 .hint = "use float32, float64, bfloat16, float16, int32, int64 or uint64"});
  }
  if (call.kind == CallKind::broadcast || is_message(call.kind)) require_peer(call.peer, size, name_of(call.kind));
  require(call.tag >= 0, "{} with the negative tag {}", name_of(call.kind), call.tag);
  if ((call.count > 0 && call.data == nullptr) || call.count > most_elements) [[unlikely]] {
    require(call.count <= most_elements, "{}: the count is out of range", describe(call));
    require(false, "{} got a null pointer", describe(call));
  }
}

// Serializes an error: each field as "<length>:<bytes>".
class ErrorText {
 public:
  static std::string write(const ErrorFields& fields) {
    std::string text;
    for (const std::string& part : {std::to_string(static_cast<int>(fields.code)), fields.message, std::to_string(fields.rank),
                                    fields.operation, std::to_string(fields.sequence), fields.name, fields.path,
                                    std::to_string(fields.error_number), fields.wanted, fields.had, fields.hint}) {
      text += std::to_string(part.size()) + ":" + part;
    }
    return text;
  }

  explicit ErrorText(std::string_view text) : rest_(text) {}

  ErrorFields read() {
    ErrorFields fields;
    fields.code = static_cast<ErrorCode>(number());
    fields.message = part();
    fields.rank = static_cast<int>(number());
    fields.operation = part();
    fields.sequence = static_cast<std::uint64_t>(number());
    fields.name = part();
    fields.path = part();
    fields.error_number = static_cast<int>(number());
    fields.wanted = part();
    fields.had = part();
    fields.hint = part();
    return fields;
  }

 private:
  std::string part() {
    std::size_t size = 0;
    const char* colon = std::from_chars(rest_.data(), rest_.data() + rest_.size(), size).ptr;
    rest_.remove_prefix(static_cast<std::size_t>(colon - rest_.data()) + 1);
    std::string result(rest_.substr(0, size));
    rest_.remove_prefix(size);
    return result;
  }
  long long number() { return std::stoll(part()); }

  std::string_view rest_;
};

// Runs `action`. Returns its error as text, with this rank in it; empty without one.
std::string run(const std::function<void()>& action, int rank_in_job) {
  ErrorFields fields{.code = ErrorCode::internal, .message = "an exception that is no std::exception"};
  try {
    action();
    return {};
  } catch (const Error& error) {
    if (error.code() == ErrorCode::peer_failed) throw;  // the job is lost: ranks can't agree anymore
    fields = error.fields();
  } catch (const std::bad_alloc&) {
    fields.code = ErrorCode::out_of_memory;
    fields.message = "there is not enough memory";
  } catch (const std::exception& error) {
    fields.message = error.what();
  } catch (...) {
  }
  if (fields.rank < 0) fields.rank = rank_in_job;
  return ErrorText::write(fields);
}

// Runs `action` and drops the operation if it throws.
template <typename Action>
auto or_drop(std::unique_ptr<PendingOperation>& operation, Action action) {
  try {
    return action();
  } catch (...) {
    operation.reset();
    throw;
  }
}

// Waits, so that the operation does not touch the caller's memory after its Pending is destroyed.
void settle(std::unique_ptr<PendingOperation>& operation) noexcept {
  if (operation == nullptr) return;
  try {
    operation->wait_on_host();
  } catch (...) {  // the next wait for these ranks throws it
  }
  operation.reset();
}

}  // namespace

std::string_view name_of(ReduceOp op) {
  switch (op) {
    case ReduceOp::sum: return "sum";
    case ReduceOp::min: return "min";
    case ReduceOp::max: return "max";
    case ReduceOp::mean: return "mean";
    case ReduceOp::fixed_sum: return "fixed_sum";
  }
  return "unknown";
}

std::string_view name_of(CallKind kind) {
  switch (kind) {
    case CallKind::barrier: return "barrier";
    case CallKind::all_reduce: return "all_reduce";
    case CallKind::reduce_scatter: return "reduce_scatter";
    case CallKind::all_gather: return "all_gather";
    case CallKind::broadcast: return "broadcast";
    case CallKind::send: return "send";
    case CallKind::receive: return "receive";
  }
  return "unknown";
}

std::string describe(const Call& call) {
  std::string text(name_of(call.kind));
  const auto amount = [&call] { return fmt::format("{} x {}", call.count, name_of(call.dtype)); };
  switch (call.kind) {
    case CallKind::barrier: break;
    case CallKind::all_reduce:
    case CallKind::reduce_scatter: text += fmt::format("({}, {})", name_of(call.op), amount()); break;
    case CallKind::all_gather: text += fmt::format("({})", amount()); break;
    case CallKind::broadcast: text += fmt::format("({}, root {})", amount(), call.peer); break;
    case CallKind::send: text += fmt::format("({} to rank {}, tag {})", amount(), call.peer, call.tag); break;
    case CallKind::receive: text += fmt::format("({} from rank {}, tag {})", amount(), call.peer, call.tag); break;
  }
  if (!call.name.empty()) text += fmt::format(" \"{}\"", call.name);
  return text;
}

Range part_of(std::int64_t count, int rank, int ranks) {
  const std::int64_t blocks = (count + block - 1) / block;
  const auto boundary = [&](std::int64_t index) { return std::min(count, blocks * index / ranks * block); };
  return {boundary(rank), boundary(rank + 1)};
}

Pending::Pending(std::unique_ptr<PendingOperation> operation) : operation_(std::move(operation)) {}
Pending::Pending(Pending&&) noexcept = default;
Pending::~Pending() { settle(operation_); }

Pending& Pending::operator=(Pending&& other) noexcept {
  if (this != &other) {
    settle(operation_);
    operation_ = std::move(other.operation_);
  }
  return *this;
}

bool Pending::done() {
  if (operation_ == nullptr) return true;
  const bool done = or_drop(operation_, [this] { return operation_->done(); });
  if (done) operation_.reset();
  return done;
}

void Pending::wait_on_host() {
  if (operation_ == nullptr) return;
  or_drop(operation_, [this] { operation_->wait_on_host(); });
  operation_.reset();
}

void Pending::wait_on_stream() {
  if (operation_ == nullptr) return;
  or_drop(operation_, [this] { operation_->wait_on_stream(); });
  operation_.reset();
}

Collectives::Collectives(int rank, int size) : rank_(rank), size_(size) {
  require(rank >= 0 && rank < size, "rank {} does not exist in a group of {} ranks", rank, size);
}

Range Collectives::part(std::int64_t count, int rank) const {
  require_peer(rank, size_, "part");
  return part_of(count, rank, size_);
}

WithoutCollectives::WithoutCollectives(const char* where) : before_(std::exchange(without_collectives, where)) {}

WithoutCollectives::~WithoutCollectives() { without_collectives = before_; }

Pending Collectives::start_checked(const Call& call) const {
  require(without_collectives == nullptr, "{} calls {}: ranks must not wait for each other there", without_collectives,
          describe(call));
  check(call, size_);
  return start(call);
}

void Collectives::barrier(std::string_view name) const {
  start_checked({.kind = CallKind::barrier, .name = name}).wait_on_host();
}

// First exchanges the sizes, each in its own block, then the texts in equal parts as large as the longest text.
std::vector<std::string> Collectives::gather_texts(std::string_view text, std::string_view name) const {
  const auto ranks = static_cast<std::size_t>(size_);
  const auto me = static_cast<std::size_t>(rank_);
  constexpr auto one = static_cast<std::size_t>(block);

  std::vector<std::uint64_t> sizes(ranks * one);
  sizes[me * one] = text.size();
  all_gather(std::span(sizes), name).wait_on_host();

  std::size_t longest = 0;
  for (std::size_t rank = 0; rank < ranks; ++rank) longest = std::max<std::size_t>(longest, sizes[rank * one]);
  const std::size_t stride = (longest + one - 1) / one * one;
  std::vector<std::uint8_t> all(ranks * stride);
  std::copy(text.begin(), text.end(), all.begin() + static_cast<std::ptrdiff_t>(me * stride));
  all_gather(std::span(all), name).wait_on_host();

  std::vector<std::string> texts;
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    const auto begin = all.begin() + static_cast<std::ptrdiff_t>(rank * stride);
    texts.emplace_back(begin, begin + static_cast<std::ptrdiff_t>(sizes[rank * one]));
  }
  return texts;
}

void Collectives::agree(const std::function<void()>& action, std::string_view name) const {
  for (const std::string& text : gather_texts(run(action, rank_in_job()), name)) {
    if (!text.empty()) throw Error(ErrorText(text).read());
  }
}

}  // namespace trireme
