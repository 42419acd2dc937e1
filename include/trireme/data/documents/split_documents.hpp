#pragma once

#include <cstdint>

#include "trireme/core/export.hpp"
#include "trireme/data/documents/documents.hpp"
#include "trireme/data/text/token_dataset.hpp"

namespace trireme TRIREME_EXPORT {
namespace data {

// The documents of a long sequence of tokens. A separator, as GPT-2's <|endoftext|>, ends a document and is its last token, so
// that a model learns where texts end. A separator that nothing comes before makes no document.
Documents split_documents(const TokenDataset& tokens, std::int32_t separator);

}  // namespace data
}  // namespace trireme
