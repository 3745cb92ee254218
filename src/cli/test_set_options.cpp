#include "calque/cli/test_set_options.h"

#include "calque/base/error.h"

namespace calque::cli {

void add_test_set_options(CLI::App& command, TestSetOptions& options) {
  command
      .add_option("--data", options.data,
                  "Test set: TSV of source<TAB>reference; default: the run's data.test")
      ->type_name("FILE");
  command.add_option("--source", options.source, "Test set in two files: the sources …")->type_name("FILE");
  command.add_option("--reference", options.reference, "… and the references")->type_name("FILE");
  command.add_option("--name", options.name, "Name of the stored evaluation; default: the file's name")
      ->type_name("NAME");
}

TestSet open_test_set(const TestSetOptions& options, const std::function<TestSet()>& otherwise) {
  if (options.source.empty() != options.reference.empty())
    throw UserError("--source and --reference belong together");
  if (!options.data.empty() && !options.source.empty())
    throw UserError("--data and --source exclude each other");
  if (options.name.find('/') != std::string::npos || options.name.starts_with('.'))
    throw UserError(fmt::format("--name: \"{}\" cannot be the name of a folder", options.name));
  TestSet test;
  if (!options.source.empty()) {
    test = read_test_set(options.source, options.reference);
  } else if (!options.data.empty()) {
    CorpusPart part;
    part.pairs = options.data;
    test = read_test_set(Corpus{part}, options.data.stem().string());
  } else {
    test = otherwise();
  }
  if (!options.name.empty()) test.name = options.name;
  return test;
}

}  // namespace calque::cli
