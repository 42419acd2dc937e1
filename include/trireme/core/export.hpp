#pragma once

// What programs may use of a shared library of trireme: every public header opens its namespace with this, all else is hidden
// where GCC compiles the library.
//
//   namespace trireme TRIREME_EXPORT {
//   class Mesh;
//   }
//
// A function template that the library instantiates needs it once more, before its return type: compilers give an instantiation
// the visibility of where it stands.
//
// A program or plugin that links the static library and wants none of it seen from outside is compiled with
// -DTRIREME_EXPORT= -fvisibility=hidden and linked with -Wl,--exclude-libs,ALL. So two plugins of one process can hold two
// versions (docs/install.md).
#ifndef TRIREME_EXPORT
#define TRIREME_EXPORT __attribute__((visibility("default")))
#endif
