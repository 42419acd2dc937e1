# NVIDIA GPUs: nvcc compiles the kernels, the C++ compiler all other code. The build needs only the headers of cuBLASLt, cuDNN and
# NCCL: a program opens the libraries when it first uses them (src/device/cuda/library.hpp), so it starts without them.
set(TRIREME_HAS_CUDA OFF)

# trireme_cuda_missing(TEXT...): switches CUDA off; an error where TRIREME_CUDA is ON.
function(trireme_cuda_missing)
  list(JOIN ARGN " " reason)
  if(TRIREME_CUDA STREQUAL "ON")
    message(FATAL_ERROR "TRIREME_CUDA=ON, but ${reason}")
  endif()
  message(STATUS "No CUDA: ${reason}")
endfunction()

macro(trireme_find_cuda)
  # Packages of PyPI put all of CUDA below one folder, nvidia, which has only libraries with a version in their names.
  find_package(Python3 QUIET COMPONENTS Interpreter)
  if(Python3_FOUND)
    execute_process(
      COMMAND ${Python3_EXECUTABLE} -c "import nvidia; print(*nvidia.__path__, sep=';', end='')"
      OUTPUT_VARIABLE nvidia_folders
      ERROR_QUIET)
  endif()
  set(cuda_places /usr/local/cuda)
  foreach(folder IN LISTS nvidia_folders)
    file(GLOB wheels LIST_DIRECTORIES true ${folder}/cu1* ${folder}/cuda_nvcc ${folder}/cudnn ${folder}/nccl)
    list(APPEND cuda_places ${wheels})
  endforeach()

  find_program(TRIREME_NVCC nvcc HINTS $ENV{CUDA_HOME} $ENV{CUDA_PATH} ${cuda_places} PATH_SUFFIXES bin)
  find_path(TRIREME_CUDNN_INCLUDE cudnn.h HINTS $ENV{CUDNN_HOME} ${cuda_places} PATH_SUFFIXES include)
  find_path(TRIREME_NCCL_INCLUDE nccl.h HINTS $ENV{NCCL_HOME} ${cuda_places} PATH_SUFFIXES include)
  mark_as_advanced(TRIREME_NVCC TRIREME_CUDNN_INCLUDE TRIREME_NCCL_INCLUDE)

  if(NOT TRIREME_NVCC AND NOT CMAKE_CUDA_COMPILER)
    trireme_cuda_missing("nvcc was not found; install the CUDA Toolkit, or name its folder by CUDA_HOME")
  elseif(NOT TRIREME_CUDNN_INCLUDE)
    trireme_cuda_missing("cudnn.h was not found; install cuDNN 9, or name its folder by CUDNN_HOME")
  elseif(NOT TRIREME_NCCL_INCLUDE)
    trireme_cuda_missing("nccl.h was not found; install NCCL, or name its folder by NCCL_HOME")
  else()
    if(NOT CMAKE_CUDA_COMPILER)
      set(CMAKE_CUDA_COMPILER ${TRIREME_NVCC})
    endif()
    if(NOT DEFINED CMAKE_CUDA_ARCHITECTURES)
      set(CMAKE_CUDA_ARCHITECTURES 90-real) # H100, H200
    endif()
    enable_language(CUDA)
    find_package(CUDAToolkit REQUIRED)
    # The folders in which a program looks for the libraries after the loader's own.
    set(TRIREME_CUDA_LIBRARY_FOLDERS ${CUDAToolkit_LIBRARY_DIR})
    foreach(include IN ITEMS ${TRIREME_CUDNN_INCLUDE} ${TRIREME_NCCL_INCLUDE})
      foreach(folder IN ITEMS lib lib64)
        if(EXISTS ${include}/../${folder})
          file(REAL_PATH ${include}/../${folder} folder)
          list(APPEND TRIREME_CUDA_LIBRARY_FOLDERS ${folder})
        endif()
      endforeach()
    endforeach()
    list(REMOVE_DUPLICATES TRIREME_CUDA_LIBRARY_FOLDERS)
    list(JOIN TRIREME_CUDA_LIBRARY_FOLDERS ":" TRIREME_CUDA_LIBRARY_FOLDERS)
    set(TRIREME_HAS_CUDA ON)
  endif()
endmacro()

if(TRIREME_CUDA STREQUAL "AUTO" AND NOT EXISTS /dev/nvidiactl AND NOT EXISTS /dev/dxg) # the devices of the driver and of WSL
  message(STATUS "No CUDA: this machine has no NVIDIA GPU; TRIREME_CUDA=ON builds for others")
elseif(NOT TRIREME_CUDA STREQUAL "OFF")
  trireme_find_cuda()
endif()

# trireme_cuda_sources(ROOM file.cpp...): files of a room that call CUDA's libraries. They are compiled apart from the others, so that
# these need not be compiled again when CUDA is switched on.
function(trireme_cuda_sources room)
  trireme_room(${room}_cuda ${ARGN})
  target_include_directories(trireme_${room}_cuda SYSTEM PRIVATE ${CUDAToolkit_INCLUDE_DIRS} ${TRIREME_CUDNN_INCLUDE}
                                                                 ${TRIREME_NCCL_INCLUDE})
endfunction()

# trireme_cuda_kernels(ROOM file.cu...): kernels of a room.
function(trireme_cuda_kernels room)
  set(kernels trireme_${room}_kernels_cuda)
  add_library(${kernels} OBJECT ${ARGN})
  target_include_directories(${kernels} PRIVATE ${PROJECT_SOURCE_DIR}/include ${PROJECT_SOURCE_DIR}/src)
  # CMake 3.25 does not know nvcc's flag for C++20. Code that nvcc generates for the C++ compiler is compiled with fewer
  # warnings.
  target_compile_options(${kernels} PRIVATE -std=c++20 --expt-relaxed-constexpr --extended-lambda -Werror=all-warnings -Xcompiler=-Wall,-Wextra,-Werror)
  target_link_libraries(${kernels} PRIVATE fmt::fmt)
  set_target_properties(${kernels} PROPERTIES POSITION_INDEPENDENT_CODE ON)
  target_sources(trireme PRIVATE $<TARGET_OBJECTS:${kernels}>)
endfunction()

# trireme_on_every_device(ROOM file.cpp...): templates over the device, compiled once with TRIREME_DEVICE=Cpu and, with CUDA,
# once more with TRIREME_DEVICE=Cuda. Such a file may define only templates.
function(trireme_on_every_device room)
  target_sources(trireme_${room} PRIVATE ${ARGN})
  target_compile_definitions(trireme_${room} PRIVATE TRIREME_DEVICE=Cpu)
  if(TRIREME_HAS_CUDA)
    trireme_room(${room}_on_cuda ${ARGN})
    target_compile_definitions(trireme_${room}_on_cuda PRIVATE TRIREME_DEVICE=Cuda)
  endif()
endfunction()

# trireme_for_every_policy(ROOM file.cpp...): the same for templates over device and precision policy. The library gets the policies for
# programs (precision/each_policy.hpp), trireme_float64 gets Float64, for the tests.
function(trireme_for_every_policy room)
  trireme_on_every_device(${room} ${ARGN})
  trireme_room_of(trireme_float64 ${room}_float64 ${ARGN})
  target_compile_definitions(trireme_${room}_float64 PRIVATE TRIREME_FLOAT64 TRIREME_DEVICE=Cpu)
  if(TRIREME_HAS_CUDA)
    trireme_room_of(trireme_float64 ${room}_float64_on_cuda ${ARGN})
    target_compile_definitions(trireme_${room}_float64_on_cuda PRIVATE TRIREME_FLOAT64 TRIREME_DEVICE=Cuda)
  endif()
endfunction()

# trireme_sources_on_every_device(TARGET file.cpp...): like trireme_on_every_device, for a program or library outside of the rooms.
function(trireme_sources_on_every_device target)
  target_sources(${target} PRIVATE ${ARGN})
  target_compile_definitions(${target} PRIVATE TRIREME_DEVICE=Cpu)
  if(TRIREME_HAS_CUDA)
    set(part ${target}_on_cuda)
    add_library(${part} OBJECT ${ARGN})
    target_compile_definitions(${part} PRIVATE TRIREME_DEVICE=Cuda)
    target_include_directories(${part} PRIVATE $<TARGET_PROPERTY:${target},INCLUDE_DIRECTORIES>)
    target_link_libraries(${part} PRIVATE $<TARGET_PROPERTY:${target},LINK_LIBRARIES>)
    target_sources(${target} PRIVATE $<TARGET_OBJECTS:${part}>)
  endif()
endfunction()
