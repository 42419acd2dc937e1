#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "trireme/core/error.hpp"
#include "trireme/core/export.hpp"
#include "trireme/core/range.hpp"
#include "trireme/data/sources/dataset.hpp"
#include "trireme/data/sources/dataset_sampler.hpp"

namespace trireme TRIREME_EXPORT {
namespace data {

// A sample whose content can't be used: its bytes are no image, its label is no class, its line is no JSON. at() of a dataset
// throws it, with the file and the reason. Other errors, such as a server that does not answer, are never bad samples.
class BadSample : public Error {
 public:
  explicit BadSample(ErrorFields fields) : Error(of_content(std::move(fields))) {}

 private:
  static ErrorFields of_content(ErrorFields fields) {
    fields.code = ErrorCode::corrupt_file;
    return fields;
  }
};

enum class OnBadSample : std::uint8_t {
  stop,  // the BadSample is thrown: WebDataset's reraise_exception
  skip,  // the next good sample takes its place: warn_and_continue
};

struct BadSampleOptions {
  OnBadSample policy = OnBadSample::stop;
  std::int64_t most = 100;  // if a rank meets more different bad samples than this, it throws Error
};

// Reads samples by a policy. With OnBadSample::skip the place of a bad sample is taken by the next good one, which depends only
// on the data, so that all ranks and threads read the same. The log names each bad sample once. Copies count together; several
// threads may call it.
class SampleReader {
 public:
  // Throws Error for a bound below 0.
  explicit SampleReader(const BadSampleOptions& options = {});

  // Returns read(index). Where that throws BadSample, the result of the next index of `among`, whose end is followed by its
  // beginning. Throws Error if all of them are bad.
  template <typename Read>
  decltype(auto) operator()(std::int64_t index, const Range& among, const Read& read) const {
    if (options_.policy == OnBadSample::stop) return read(index);
    for (std::int64_t tried = index;;) {
      try {
        return read(tried);
      } catch (const BadSample& bad) {
        tried = after_bad(index, tried, among, bad);
      }
    }
  }

  OnBadSample policy() const { return options_.policy; }
  std::int64_t num_bad() const;  // different ones so far

 private:
  std::int64_t after_bad(std::int64_t index, std::int64_t tried, const Range& among, const BadSample& bad) const;

  struct Seen;
  BadSampleOptions options_;
  std::shared_ptr<Seen> seen_;
};

// A dataset in which good samples take the places of bad ones: those whose at() throws BadSample.
//
//   struct Articles {
//     std::int64_t size() const { return lines.size(); }
//     std::string at(std::int64_t index) const { return data::text_of(lines.at(index), "text"); }
//     data::JsonLines lines;
//   };
//   const data::SkipBadSamples articles(Articles{data::JsonLines(files)}, {.policy = data::OnBadSample::skip, .most = 100});
//   const data::Loader loader(articles, {.batch = run.batch(), .workers = 4});
//
// In a dataset of several parts, such as Joined, a sample of the same part takes the place.
template <ItemDataset D>
class SkipBadSamples {
 public:
  explicit SkipBadSamples(D dataset, const BadSampleOptions& options = {.policy = OnBadSample::skip})
      : dataset_(std::move(dataset)), parts_(parts_of(dataset_)), reader_(options) {
    for (const DatasetPart& part : parts_) ends_.push_back((ends_.empty() ? 0 : ends_.back()) + part.size);
  }

  std::int64_t size() const { return static_cast<std::int64_t>(dataset_.size()); }
  const std::vector<DatasetPart>& parts() const { return parts_; }
  std::int64_t tokens_per_sample() const requires requires(const D& dataset) { dataset.tokens_per_sample(); }
  { return dataset_.tokens_per_sample(); }
  const D& dataset() const { return dataset_; }
  std::int64_t num_bad_samples() const { return reader_.num_bad(); }  // different ones so far

  decltype(auto) at(std::int64_t index) const {
    require(index >= 0 && index < size(), "item {} of {}", index, size());
    const auto part = std::ranges::upper_bound(ends_, index);
    const Range among{.begin = part == ends_.begin() ? 0 : *(part - 1), .end = *part};
    return reader_(index, among, [this](std::int64_t item) -> decltype(auto) {
      return dataset_.at(static_cast<decltype(dataset_.size())>(item));
    });
  }

 private:
  D dataset_;
  std::vector<DatasetPart> parts_;
  std::vector<std::int64_t> ends_;
  SampleReader reader_;
};

template <typename D>
std::string content_of(const SkipBadSamples<D>& dataset) requires requires(const D& inner) {
  content_of(inner);
}
{ return content_of(dataset.dataset()); }

}  // namespace data
}  // namespace trireme
