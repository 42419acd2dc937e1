#include <charconv>
#include <exception>
#include <string>

#include "comm/backend.hpp"
#include "trireme/comm/group.hpp"

namespace trireme {
namespace {

// An error as one text: its fields, each as "<length>:<bytes>".
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

// Runs `action`; the text of what it threw, with this rank in it, else nothing.
std::string run(const std::function<void()>& action, int world_rank) {
  ErrorFields fields{.code = ErrorCode::internal, .message = "an exception that is no std::exception"};
  try {
    action();
    return {};
  } catch (const Error& error) {
    if (error.code() == ErrorCode::peer_failed) throw;  // the job is lost: nobody can agree any more
    fields = error.fields();
  } catch (const std::exception& error) {
    fields.message = error.what();
  } catch (...) {
  }
  if (fields.rank < 0) fields.rank = world_rank;
  return ErrorText::write(fields);
}

}  // namespace

void Group::agree(const std::function<void()>& action, std::string_view name) const {
  const int world_rank = backend_->members().ranks[static_cast<std::size_t>(rank())];
  for (const std::string& text : gather_texts(run(action, world_rank), name)) {
    if (!text.empty()) throw Error(ErrorText(text).read());
  }
}

}  // namespace trireme
