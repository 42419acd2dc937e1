#pragma once

#include <memory>

#include "trireme/files/file_system.hpp"

namespace trireme::remote {

// A file of which each read is a journey to a server. Who reads on where an earlier read has ended, or little behind it, gets
// larger and larger blocks, of which the next reads are served; several may read on at places of their own. Another read brings
// what it asks for and no more.
std::unique_ptr<InputFile> with_read_ahead(std::unique_ptr<InputFile> file, const Location& location);

}  // namespace trireme::remote
