#include "calque/cli/command.h"

int main(int argc, char** argv) { return calque::cli::run(argc, argv); }
