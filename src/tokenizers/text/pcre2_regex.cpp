#define PCRE2_CODE_UNIT_WIDTH 8
#include <fmt/format.h>
#include <pcre2.h>

#include <array>
#include <string>

#include "tokenizers/text/regex.hpp"
#include "tokenizers/text/regex_pattern.hpp"
#include "trireme/core/error.hpp"

namespace trireme::tokenizers {
namespace {

std::string message_of(int code) {
  std::array<PCRE2_UCHAR, 256> text{};
  pcre2_get_error_message(code, text.data(), text.size());
  return reinterpret_cast<const char*>(text.data());
}

// A thread's buffers for matches.
struct Results {
  Results() : data(pcre2_match_data_create(1, nullptr)), context(pcre2_match_context_create(nullptr)) {
    // High enough for long runs of one kind of character, but stops an expression that would take forever.
    pcre2_set_match_limit(context, 200'000'000);
    stack = pcre2_jit_stack_create(32 << 10, 64 << 20, nullptr);
    pcre2_jit_stack_assign(context, nullptr, stack);
  }
  ~Results() {
    pcre2_match_data_free(data);
    pcre2_match_context_free(context);
    pcre2_jit_stack_free(stack);
  }
  Results(const Results&) = delete;
  Results& operator=(const Results&) = delete;

  pcre2_match_data* data;
  pcre2_match_context* context;
  pcre2_jit_stack* stack = nullptr;
};

Results& results_of_thread() {
  static thread_local Results results;
  return results;
}

}  // namespace

struct Regex::Code {
  Code(const std::string& pattern, RegexRules rules) {
    const std::string own = pattern_for_pcre2(pattern, rules);
    int error = 0;
    std::size_t at = 0;
    pcre2_compile_context* const context = pcre2_compile_context_create(nullptr);
    pcre2_set_newline(context, PCRE2_NEWLINE_LF);
    code = pcre2_compile(reinterpret_cast<PCRE2_SPTR>(own.data()), own.size(), PCRE2_UTF | PCRE2_UCP | PCRE2_NEVER_BACKSLASH_C,
                         &error, &at, context);
    pcre2_compile_context_free(context);
    if (code == nullptr) {
      throw Error({.code = ErrorCode::invalid_argument,
                   .message = fmt::format("a tokenizer's regular expression can't be compiled: {}", message_of(error)),
                   .had = pattern});
    }
    is_compiled = pcre2_jit_compile(code, PCRE2_JIT_COMPLETE) == 0;  // otherwise it is interpreted
  }
  ~Code() { pcre2_code_free(code); }
  Code(const Code&) = delete;
  Code& operator=(const Code&) = delete;

  pcre2_code* code = nullptr;
  bool is_compiled = false;
};

Regex::Regex(const std::string& pattern, RegexRules rules)
    : pattern_(pattern), known_(known_pattern_of(pattern)), code_(std::make_shared<const Code>(pattern, rules)) {}

Regex::Match::Match(const Regex& of, std::string_view in) : regex(of), text(in) {}

bool Regex::Match::next() {
  Results& results = results_of_thread();
  const auto* const subject = reinterpret_cast<PCRE2_SPTR>(text.data());
  auto from = static_cast<std::size_t>(end);
  constexpr std::uint32_t options = PCRE2_NO_UTF_CHECK | PCRE2_NOTEMPTY;
  int found = PCRE2_ERROR_JIT_STACKLIMIT;
  if (regex.code_->is_compiled) {
    found = pcre2_jit_match(regex.code_->code, subject, text.size(), from, options, results.data, results.context);
  }
  if (found == PCRE2_ERROR_JIT_STACKLIMIT) {  // the JIT stack is too small, or there is no JIT code
    found = pcre2_match(regex.code_->code, subject, text.size(), from, options | PCRE2_NO_JIT, results.data, results.context);
  }
  if (found == PCRE2_ERROR_NOMATCH) return false;
  if (found < 0) {
    throw Error({.code = ErrorCode::invalid_argument,
                 .message = fmt::format("a tokenizer's regular expression fails behind byte {}: {}", from, message_of(found)),
                 .had = regex.pattern_});
  }
  const std::size_t* const ends = pcre2_get_ovector_pointer(results.data);
  begin = static_cast<std::int64_t>(ends[0]);
  end = static_cast<std::int64_t>(ends[1]);
  return true;
}

}  // namespace trireme::tokenizers
