#!/usr/bin/env bash
# cmake --install gives a package that find_package(calque) finds from another project, a man page and completions.
set -euo pipefail
[ -z "${CALQUE_SANITIZE:-}" ] || { echo "not for sanitizer builds: skipped"; exit 77; }
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cmake --install "$CALQUE_BUILD" --prefix "$folder/prefix" >/dev/null
"$folder/prefix/bin/calque" --version | grep -q '^calque '
test -s "$folder/prefix/share/man/man1/calque.1"
test -s "$folder/prefix/share/bash-completion/completions/calque"

mkdir "$folder/other"
cat >"$folder/other/CMakeLists.txt" <<'CMAKE'
cmake_minimum_required(VERSION 3.25)
project(other CXX)
find_package(calque 0.1 REQUIRED)
add_executable(other main.cpp)
target_link_libraries(other PRIVATE calque::data)
CMAKE
cat >"$folder/other/main.cpp" <<'CPP'
#include <calque/data/permutation.h>
int main() { return calque::Permutation(1, 0)(0) == 0 ? 0 : 1; }
CPP
torch=$(sed -n 's/^Torch_DIR:PATH=\(.*\)\/share\/cmake\/Torch$/\1/p' "$CALQUE_BUILD/CMakeCache.txt")
cmake -S "$folder/other" -B "$folder/other/build" -G Ninja -DCMAKE_PREFIX_PATH="$folder/prefix;$torch" >/dev/null
cmake --build "$folder/other/build" >/dev/null
"$folder/other/build/other"
echo ok
