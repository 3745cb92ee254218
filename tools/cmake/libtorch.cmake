# Finds LibTorch and offers it as the target calque_libtorch.
#
# LibTorch's include folder carries its own fmt, newer than the distribution's spdlog can take. Searched last
# (-idirafter) the distribution's fmt is found first, and LibTorch itself never includes fmt from torch.h.
if(NOT TARGET calque_libtorch)
  set(CMAKE_MESSAGE_LOG_LEVEL ERROR)  # LibTorch warns of a profiler library that its CPU build does not have
  find_package(Torch 2.13 QUIET REQUIRED)
  unset(CMAKE_MESSAGE_LOG_LEVEL)
  # NCCL, between GPUs: a LibTorch with it says so to those who link it, and its header needs nccl.h.
  set(CALQUE_NCCL OFF)
  if(TARGET torch_cuda)
    get_target_property(definitions torch_cuda INTERFACE_COMPILE_DEFINITIONS)
    find_path(NCCL_INCLUDE_DIR nccl.h HINTS ${CUDAToolkit_INCLUDE_DIRS})
    if(definitions MATCHES USE_C10D_NCCL AND NCCL_INCLUDE_DIR)
      set(CALQUE_NCCL ON)
    endif()
  endif()
  foreach(target torch torch_library torch_cpu_library torch_cuda_library torch_xpu_library c10 c10_cuda c10_xpu)
    if(TARGET ${target})
      set_target_properties(${target} PROPERTIES INTERFACE_INCLUDE_DIRECTORIES "" INTERFACE_SYSTEM_INCLUDE_DIRECTORIES "")
    endif()
  endforeach()
  add_library(calque_libtorch INTERFACE IMPORTED)
  target_link_libraries(calque_libtorch INTERFACE torch)
  target_link_options(calque_libtorch INTERFACE -fopenmp)
  foreach(folder ${TORCH_INCLUDE_DIRS})
    target_compile_options(calque_libtorch INTERFACE "SHELL:-idirafter ${folder}")
  endforeach()
endif()
