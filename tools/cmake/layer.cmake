# calque_layer(NAME [TORCH] [LAYERS below…] [LIBRARIES external…])
#
# Each layer sees its own headers and those of the layers it links, through an include folder of its own: including a
# header from above is "No such file". So the compiler checks the arrows of the architecture.

# Our own code: warnings are errors, sanitizers as configured.
# -fopenmp, because at::parallel_for is a template that runs serially without it.
function(calque_own_code target)
  target_compile_options(${target} PRIVATE -Wall -Wextra -Wpedantic -Wshadow -Wnon-virtual-dtor -Woverloaded-virtual
                                           -Wimplicit-fallthrough)
  if(NOT CALQUE_FUZZ)  # clang has warnings of its own, and would need its own OpenMP
    target_compile_options(${target} PRIVATE -Wconversion -Werror -fopenmp)
  endif()
  if(CMAKE_CXX_COMPILER_ID STREQUAL GNU AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
    target_compile_options(${target} PRIVATE -Wno-restrict -Wno-stringop-overflow)  # false alarms in std::string: GCC bug 105651
  endif()
  if(CALQUE_SANITIZE)
    target_compile_options(${target} PRIVATE -fsanitize=${CALQUE_SANITIZE} -fno-omit-frame-pointer)
    target_link_options(${target} PUBLIC -fsanitize=${CALQUE_SANITIZE})
    if(CALQUE_SANITIZE STREQUAL "thread" AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
      target_compile_options(${target} PRIVATE -Wno-tsan) # about fences in LibTorch's headers
    endif()
  endif()
endfunction()

# Two precompiled headers: one for targets that include LibTorch, one for those that do not.
# All objects are -fPIC, the tests' too: GCC takes a precompiled header only under the flags that it was made with.
function(calque_precompile target)
  cmake_parse_arguments(PARSE_ARGV 1 pch "TORCH" "" "")
  set(headers <fmt/format.h> <spdlog/spdlog.h> <yaml-cpp/yaml.h> <nlohmann/json.hpp>)
  set(libraries spdlog::spdlog yaml-cpp nlohmann_json::nlohmann_json)
  set(shared calque_plain_pch)
  if(pch_TORCH)
    # Not torch/torch.h: templates that a precompiled header leaves pending are instantiated in every file that uses
    # it, 25 s each for all of torch.h, 5 s for what is needed of it.
    list(APPEND headers <torch/nn/module.h> <torch/csrc/autograd/custom_function.h> <ATen/Parallel.h>)
    list(APPEND libraries calque_libtorch)
    set(shared calque_torch_pch)
  endif()
  if(NOT TARGET ${shared})
    file(WRITE ${PROJECT_BINARY_DIR}/${shared}.cpp "")
    add_library(${shared} OBJECT ${PROJECT_BINARY_DIR}/${shared}.cpp)
    target_link_libraries(${shared} PRIVATE ${libraries} Threads::Threads)
    calque_own_code(${shared})
    target_precompile_headers(${shared} PRIVATE ${headers})
    target_compile_options(${shared} PRIVATE -fPIC -fpch-preprocess)
  endif()
  target_compile_options(${target} PRIVATE -fPIC -fpch-preprocess)
  target_precompile_headers(${target} REUSE_FROM ${shared})
endfunction()

# Compiles several files of a target as one, since most of the time goes into headers. Few enough that one changed file
# still builds within half a minute.
function(calque_unity target wanted)
  if(wanted)
    set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE 4)
  endif()
endfunction()

function(calque_layer name)
  cmake_parse_arguments(PARSE_ARGV 1 layer "TORCH" "" "LAYERS;LIBRARIES")
  file(GLOB sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/${name}/*.cpp)
  set(target calque_${name})
  add_library(${target} STATIC ${sources})
  add_library(calque::${name} ALIAS ${target})
  set_target_properties(${target} PROPERTIES EXPORT_NAME ${name})

  set(own_headers ${PROJECT_BINARY_DIR}/layers/${name})
  file(MAKE_DIRECTORY ${own_headers}/calque)
  if(name STREQUAL library)  # its one header is the library's face
    file(CREATE_LINK ${PROJECT_SOURCE_DIR}/include/calque/calque.h ${own_headers}/calque/calque.h SYMBOLIC)
  else()
    file(CREATE_LINK ${PROJECT_SOURCE_DIR}/include/calque/${name} ${own_headers}/calque/${name} SYMBOLIC)
  endif()
  target_include_directories(${target} PUBLIC $<BUILD_INTERFACE:${own_headers}>
                                              $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
  target_compile_features(${target} PUBLIC cxx_std_20)
  list(TRANSFORM layer_LAYERS PREPEND calque_)
  target_link_libraries(${target} PUBLIC ${layer_LAYERS} ${layer_LIBRARIES} Threads::Threads)
  calque_own_code(${target})
  calque_unity(${target} ${CALQUE_UNITY})
  if(layer_TORCH)
    target_link_libraries(${target} PUBLIC calque_libtorch)
    calque_precompile(${target} TORCH)
  else()
    calque_precompile(${target})
  endif()
  set_property(GLOBAL APPEND PROPERTY CALQUE_LAYERS ${name})
endfunction()
