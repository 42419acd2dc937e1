#include "trireme/core/version.hpp"

#define TRIREME_TEXT_OF(number) #number
#define TRIREME_DOTTED(major, minor, patch) TRIREME_TEXT_OF(major) "." TRIREME_TEXT_OF(minor) "." TRIREME_TEXT_OF(patch)

namespace trireme {

std::string_view version() { return TRIREME_DOTTED(TRIREME_VERSION_MAJOR, TRIREME_VERSION_MINOR, TRIREME_VERSION_PATCH); }

}  // namespace trireme
