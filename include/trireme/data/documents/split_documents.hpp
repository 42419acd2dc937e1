#pragma once

#include <cstdint>

#include "trireme/core/export.hpp"
#include "trireme/data/documents/documents.hpp"
#include "trireme/data/text/token_dataset.hpp"

namespace trireme TRIREME_EXPORT {
namespace data {

// Splits a long sequence of tokens into documents. A separator, such as GPT-2's <|endoftext|>, ends a document and stays its
// last token, so that a model learns where texts end. A separator that would be a document by itself is dropped.
Documents split_documents(const TokenDataset& tokens, std::int32_t separator);

}  // namespace data
}  // namespace trireme
