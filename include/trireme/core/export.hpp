#pragma once

// Exports the declarations of public headers from a shared library of trireme. Every public header opens its namespace with
// TRIREME_EXPORT; everything else is hidden if GCC compiles the library.
//
//   namespace trireme TRIREME_EXPORT {
//   class Mesh;
//   }
//
// A function template that the library instantiates needs TRIREME_EXPORT again before its return type, because an instantiation
// gets the visibility of the place at which the instantiation is written.
//
// A program or plugin that links the static library can hide all symbols of the library: compile with -DTRIREME_EXPORT=
// -fvisibility=hidden and link with -Wl,--exclude-libs,ALL. Then two plugins of one process can use two versions
// (docs/install.md).
#ifndef TRIREME_EXPORT
#define TRIREME_EXPORT __attribute__((visibility("default")))
#endif
