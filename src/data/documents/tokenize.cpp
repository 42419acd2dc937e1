#include "trireme/data/documents/tokenize.hpp"

#include <fmt/format.h>
#include <omp.h>

#include <array>
#include <future>
#include <utility>
#include <vector>

#include "data/documents/tokenized_shards.hpp"
#include "data/sources/lines.hpp"
#include "data/sources/together.hpp"
#include "data/text/require_text.hpp"
#include "trireme/core/error.hpp"
#include "trireme/core/range.hpp"
#include "trireme/data/sources/dataset.hpp"

namespace trireme::data {
namespace {

constexpr std::size_t bytes_at_once = 4 << 20;      // of text, for each worker
constexpr std::size_t documents_at_once = 1 << 16;  // likewise
constexpr std::int64_t broken_count = -1;           // in place of a number of tokens
constexpr int counts_tag = 0, tokens_tag = 1;

struct Tokenized {
  std::vector<std::int32_t> tokens;  // none: the document is empty
  bool is_broken = false;
};

class Job {
 public:
  Job(std::span<const std::string> patterns, const tokenizers::Tokenizer& tokenizer, const Location& prefix,
      const TokenizeOptions& options, const Collectives* ranks)
      : tokenizer_(tokenizer),
        options_(options),
        ranks_(ranks),
        rank_(ranks == nullptr ? 0 : ranks->rank()),
        num_ranks_(ranks == nullptr ? 1 : ranks->size()),
        workers_(options.workers > 0 ? options.workers : omp_get_max_threads()) {
    std::array<std::int64_t, 2> next{};
    together(ranks_, "look for the inputs", [&] {
      require(options.workers >= 0, "{} workers can tokenize nothing; 0 means all threads of this rank", options.workers);
      require(!options.end_token || (*options.end_token >= 0 && *options.end_token < tokenizer.vocabulary_size()),
              "the end token {} is none of the tokenizer's {}", options.end_token.value_or(0), tokenizer.vocabulary_size());
      inputs_ = inputs_of(patterns, options.sources);
      if (rank_ != 0) return;
      shards_.emplace(inputs_, tokenizer, prefix, options);
      next = {shards_->next().file, shards_->next().byte};
    });
    if (ranks_ != nullptr) ranks_->broadcast(std::span(next), 0, "where to go on").wait_on_host();
    documents_.emplace(inputs_.files, options.separator, options.text_field, DocumentPlace{next[0], next[1]});
  }

  // Beside tokenizing, a thread writes what was gathered before and reads what comes next.
  TokenizeReport run() {
    together(ranks_, "read documents", [&] { next_ = read(); });
    while (!next_.empty() || !read_.empty()) {
      std::vector<RawDocument> written = std::exchange(read_, std::exchange(next_, {}));
      std::vector<Tokenized> gathered = std::exchange(tokenized_, {});
      together(ranks_, "tokenize documents", [&] {
        auto beside = std::async(std::launch::async, [&] {
          write(written, gathered);
          next_ = read();
        });
        tokenize_own();
        beside.get();
      });
      gather();
    }
    together(ranks_, "write the last shard", [&] {
      if (shards_) shards_->finish();
    });
    return report();
  }

 private:
  // As many documents as all ranks take at once.
  std::vector<RawDocument> read() {
    std::vector<RawDocument> documents;
    const auto workers = static_cast<std::size_t>(workers_ * num_ranks_);
    std::size_t bytes = 0;
    while (bytes < workers * bytes_at_once && documents.size() < workers * documents_at_once) {
      std::optional<RawDocument> document = documents_->next();
      if (!document) break;
      bytes += document->text.size();
      documents.push_back(*std::move(document));
    }
    return documents;
  }

  Range share(int rank) const { return share_of(std::ssize(read_), rank, num_ranks_); }

  void tokenize_own() {
    const Range own = share(rank_);
    tokenized_.assign(static_cast<std::size_t>(own.count()), {});
    for_each_item(own.count(), workers_, [&](std::int64_t item) {
      tokenized_[static_cast<std::size_t>(item)] = tokenize(read_[static_cast<std::size_t>(own.begin + item)]);
    });
  }

  Tokenized tokenize(const RawDocument& document) const {
    const Location& file = inputs_.files[static_cast<std::size_t>(document.place.file)];
    try {
      return {.tokens = tokens_of(document, file)};
    } catch (const Error& error) {
      if (error.code() != ErrorCode::invalid_argument) throw;
      if (options_.skip_broken) return {.tokens = {}, .is_broken = true};
      ErrorFields fields = error.fields();
      fields.message = fmt::format("{}: {}", words_of(document.place, file), fields.message);
      fields.path = file.string();
      if (fields.hint.empty())
        fields.hint = "mend the document, or skip broken ones: --skip-broken, TokenizeOptions::skip_broken";
      throw Error(std::move(fields));
    }
  }

  std::vector<std::int32_t> tokens_of(const RawDocument& document, const Location& file) const {
    std::string of_line;
    const bool has_lines = has_json_lines(file);
    if (has_lines) {
      of_line = text_in_line(document.text, options_.text_field);
    } else {
      require_text(document.text, file);
    }
    const std::string& text = has_lines ? of_line : document.text;
    if (text.empty()) return {};
    std::vector<std::int32_t> tokens = tokenizer_.encode(text, {.add_special_tokens = options_.special_tokens});
    if (options_.end_token && !tokens.empty()) tokens.push_back(*options_.end_token);
    return tokens;
  }

  // All ranks' shares lie on the first one.
  void gather() {
    if (num_ranks_ == 1) return;
    if (rank_ != 0) {
      std::vector<std::int64_t> counts;
      std::vector<std::int32_t> tokens;
      for (const Tokenized& document : tokenized_) {
        counts.push_back(document.is_broken ? broken_count : std::ssize(document.tokens));
        tokens.insert(tokens.end(), document.tokens.begin(), document.tokens.end());
      }
      if (counts.empty()) return;
      ranks_->send(std::span<const std::int64_t>(counts), 0, counts_tag, "numbers of tokens");
      if (!tokens.empty()) ranks_->send(std::span<const std::int32_t>(tokens), 0, tokens_tag, "tokens");
      return;
    }
    for (int from = 1; from < num_ranks_; ++from) {
      std::vector<std::int64_t> counts(static_cast<std::size_t>(share(from).count()));
      if (counts.empty()) continue;
      ranks_->receive(std::span(counts), from, counts_tag, "numbers of tokens").wait_on_host();
      std::size_t total = 0;
      for (const std::int64_t count : counts) total += count == broken_count ? 0 : static_cast<std::size_t>(count);
      std::vector<std::int32_t> tokens(total);
      if (total > 0) ranks_->receive(std::span(tokens), from, tokens_tag, "tokens").wait_on_host();
      auto at = tokens.begin();
      for (const std::int64_t count : counts) {
        const auto end = at + (count == broken_count ? 0 : count);
        tokenized_.push_back({.tokens = {at, end}, .is_broken = count == broken_count});
        at = end;
      }
    }
  }

  void write(const std::vector<RawDocument>& documents, const std::vector<Tokenized>& tokenized) {
    if (!shards_) return;
    for (std::size_t at = 0; at < tokenized.size(); ++at) {
      if (tokenized[at].tokens.empty()) {
        shards_->leave_out(tokenized[at].is_broken);
      } else {
        shards_->add(tokenized[at].tokens, documents[at]);
      }
    }
  }

  TokenizeReport report() const {
    std::array<std::int64_t, 6> counts{};
    if (shards_) {
      const TokenizeReport& own = shards_->report();
      counts = {own.shards, own.documents, own.tokens, own.empty, own.broken, own.shards_found};
    }
    if (ranks_ != nullptr) ranks_->broadcast(std::span(counts), 0, "what was tokenized").wait_on_host();
    return {.shards = counts[0],
            .documents = counts[1],
            .tokens = counts[2],
            .empty = counts[3],
            .broken = counts[4],
            .shards_found = counts[5]};
  }

  const tokenizers::Tokenizer& tokenizer_;
  const TokenizeOptions& options_;
  const Collectives* ranks_;
  int rank_;
  int num_ranks_;
  int workers_;
  TokenizedInputs inputs_;
  std::optional<TokenizedShards> shards_;  // of the first rank
  std::optional<RawDocuments> documents_;
  std::vector<RawDocument> next_;     // for all ranks
  std::vector<RawDocument> read_;     // those that are tokenized
  std::vector<Tokenized> tokenized_;  // of this rank's share; on the first one, once gathered, of all
};

}  // namespace

TokenizeReport tokenize_files(std::span<const std::string> inputs, const tokenizers::Tokenizer& tokenizer,
                              const Location& prefix, const TokenizeOptions& options, const Collectives* ranks) {
  return Job(inputs, tokenizer, prefix, options, ranks).run();
}

}  // namespace trireme::data
