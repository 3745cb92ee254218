#!/usr/bin/env bash
# cmake --install gives a package that another project finds and translates with, as the command line does; a man page and
# completions. CLI11 and libedit are not needed for it, and no private header is installed.
set -euo pipefail
[ -z "${CALQUE_SANITIZE:-}" ] || { echo "not for sanitizer builds: skipped"; exit 77; }
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cmake --install "$CALQUE_BUILD" --prefix "$folder/prefix" >/dev/null
"$folder/prefix/bin/calque" --version | grep -q '^calque '
test -s "$folder/prefix/share/man/man1/calque.1"
test -s "$folder/prefix/share/bash-completion/completions/calque"
headers=$(cd "$folder/prefix/include" && find . -type f)
[ "$headers" = ./calque/calque.h ] || { echo "FAILED: headers installed: $headers"; exit 1; }
for config in "$folder"/prefix/share/calque/configs/*.yaml; do  # its data are installed too
  (cd "$folder" && "$folder/prefix/bin/calque" -q data check "$config" >/dev/null) || { echo "FAILED: $config"; exit 1; }
done
test -s "$folder/prefix/share/calque/checkpoints/base/model.safetensors"

mkdir "$folder/other"
cat >"$folder/other/CMakeLists.txt" <<'CMAKE'
cmake_minimum_required(VERSION 3.25)
project(other CXX)
set(CMAKE_DISABLE_FIND_PACKAGE_CLI11 ON)
find_package(calque 0.1 REQUIRED COMPONENTS translate)
add_executable(other main.cpp)
target_link_libraries(other PRIVATE calque::translate)
CMAKE
cat >"$folder/other/main.cpp" <<'CPP'
#include <calque/calque.h>

#include <iostream>

int main(int, char** arguments) {
  const calque::Model model = calque::Model::load(arguments[1]);
  std::cout << model.translate("Le chat dort sur la chaise.") << "\n";
  for (const std::string& text : model.translate({"Bonjour.", "", "Il fait beau."})) std::cout << text << "\n";
  std::cout << (model.score("Bonjour.", "Hello.") < 0) << "\n";
  try {
    calque::Model::load("no-such-run");
  } catch (const calque::Error& error) {
    std::cout << error.what() << "\n";
  }
}
CPP
torch=$(sed -n 's/^Torch_DIR:PATH=\(.*\)\/share\/cmake\/Torch$/\1/p' "$CALQUE_BUILD/CMakeCache.txt")
cmake -S "$folder/other" -B "$folder/other/build" -G Ninja -DCMAKE_PREFIX_PATH="$folder/prefix;$torch" >/dev/null
cmake --build "$folder/other/build" >/dev/null

cd "$folder"
"$CALQUE" -q train "$OLDPWD/configs/demo.yaml" run=tiny model.size=tiny train.steps=30 train.warmup_steps=5 train.validate_every=0
printf '%s\n' 'Le chat dort sur la chaise.' 'Bonjour.' '' 'Il fait beau.' | "$CALQUE" -q translate tiny >expected
printf '1\nno-such-run: no such run or checkpoint\n' >>expected
"$folder/other/build/other" tiny >found 2>errors
diff expected found
[ ! -s errors ] || { echo "FAILED: the library wrote to stderr:"; cat errors; exit 1; }
echo ok
