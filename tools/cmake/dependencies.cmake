# The libraries that calque stands on. tools/setup installs all of them.
find_package(spdlog REQUIRED)
find_package(yaml-cpp REQUIRED)
find_package(nlohmann_json REQUIRED)
find_package(CLI11 REQUIRED)
find_package(ZLIB REQUIRED)
find_package(Threads REQUIRED)
find_package(Boost 1.81 REQUIRED)  # Asio and Beast: headers alone
find_package(ICU REQUIRED COMPONENTS i18n uc)
find_package(PkgConfig REQUIRED)
pkg_check_modules(EDIT REQUIRED IMPORTED_TARGET libedit)

# The venv that tools/setup makes, unless the user named another LibTorch.
if(DEFINED ENV{CALQUE_TORCH})
  unset(Torch_DIR CACHE)
  list(PREPEND CMAKE_PREFIX_PATH $ENV{CALQUE_TORCH})
else()
  string(REPLACE ":" ";" named_by_user "$ENV{CMAKE_PREFIX_PATH}")
  list(APPEND CMAKE_PREFIX_PATH ${named_by_user})
  file(GLOB private_torch ${PROJECT_SOURCE_DIR}/.deps/torch/lib/python3.*/site-packages/torch)
  list(APPEND CMAKE_PREFIX_PATH ${private_torch})
endif()
include(libtorch)
# The headers of gloo, which LibTorch contains but does not install.
find_path(GLOO_HEADERS gloo/config.h REQUIRED)

