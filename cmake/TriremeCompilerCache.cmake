# Calls compilers through ccache where it is installed: a file that was compiled once is not compiled again, even in another clone of
# the project. For that, paths below the source folder count as relative ones, and the folder of a compilation does not count.
# -DTRIREME_COMPILER_CACHE=OFF switches it off.
option(TRIREME_COMPILER_CACHE "Compile through ccache where it is installed" ON)
if(NOT PROJECT_IS_TOP_LEVEL)
  return()
endif()

# Makes __FILE__ the same in every clone.
add_compile_options($<$<COMPILE_LANGUAGE:C,CXX>:-fmacro-prefix-map=${PROJECT_SOURCE_DIR}/=>)

if(TRIREME_COMPILER_CACHE)
  find_program(TRIREME_CCACHE ccache)
  mark_as_advanced(TRIREME_CCACHE)
  if(TRIREME_CCACHE)
    # CCACHE_DEPEND: by the content of headers, comments too. Without it a precompiled header would come from the cache that was made
    # before a comment changed, and GCC would not know by it that the header is read already.
    set(compiler_launcher env CCACHE_BASEDIR=${PROJECT_SOURCE_DIR} CCACHE_NOHASHDIR=1 CCACHE_DEPEND=1
                          CCACHE_SLOPPINESS=pch_defines,time_macros ${TRIREME_CCACHE})
    foreach(language IN ITEMS C CXX CUDA)
      if(NOT DEFINED CMAKE_${language}_COMPILER_LAUNCHER)
        set(CMAKE_${language}_COMPILER_LAUNCHER ${compiler_launcher})
      endif()
    endforeach()
  endif()
endif()
