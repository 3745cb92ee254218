// calque man: the manual page, from the same table as --help.
#include "calque/base/error.h"
#include "calque/cli/command.h"

namespace calque::cli {
namespace {

std::string escaped(const std::string& text) {
  std::string out;
  bool line_start = true;
  for (const char c : text) {
    if (line_start && (c == '.' || c == '\'')) out += "\\&";
    if (c == '\\') {
      out += "\\e";
    } else if (c == '-') {
      out += "\\-";
    } else {
      out += c;
    }
    line_start = c == '\n';
  }
  return out;
}

void describe_options(const CLI::App& app, std::string& out) {
  for (const CLI::Option* option : app.get_options()) {
    if (option->get_group().empty()) continue;
    std::string name = option->get_name(option->get_positional() && option->get_lnames().empty(), true);
    if (!option->get_positional() && option->get_items_expected_max() > 0)
      name += " " + option->get_type_name();
    std::string help = option->get_description();
    if (!option->get_default_str().empty()) help += " (default: " + option->get_default_str() + ")";
    out += fmt::format(".TP\n.B {}\n{}\n", escaped(name), escaped(help));
  }
}

void describe_command(const CLI::App& app, const std::string& prefix, std::string& out) {
  const std::string name = prefix + " " + app.get_name();
  const auto subs = app.get_subcommands([](const CLI::App* sub) { return !sub->get_group().empty(); });
  if (!subs.empty()) {
    for (const CLI::App* sub : subs) describe_command(*sub, name, out);
    return;
  }
  out += fmt::format(".SS {}\n{}.\n", escaped(name), escaped(app.get_description()));
  describe_options(app, out);
  if (!app.get_footer().empty()) out += fmt::format(".PP\n.nf\n{}\n.fi\n", escaped(app.get_footer()));
}

std::string man_page(const CLI::App& app) {
  std::string out = fmt::format(".TH CALQUE 1 \"\" \"calque {}\" \"User Commands\"\n", CALQUE_VERSION);
  out += ".SH NAME\ncalque \\- decoder-only Transformer trainer for French-English translation\n";
  out += ".SH SYNOPSIS\n.B calque\n.I COMMAND\n[options]\n";
  out += fmt::format(".SH DESCRIPTION\n{}\nData is written to standard output, messages to standard error.\n",
                     escaped(app.get_description()));
  out += ".SH OPTIONS\n";
  describe_options(app, out);
  out += ".SH COMMANDS\n";
  for (const CLI::App* sub :
       app.get_subcommands([](const CLI::App* one) { return !one->get_group().empty(); })) {
    describe_command(*sub, "calque", out);
  }
  out +=
      ".SH EXIT STATUS\n.TP\n.B 0\nDone.\n.TP\n.B 1\nIt failed.\n.TP\n.B 2\nThe command line, the "
      "configuration or the data is wrong.\n"
      ".TP\n.B 130\nInterrupted; what was begun is saved.\n";
  out +=
      ".SH FILES\n.TP\n.I runs/NAME/\nA run: its configuration, tokenizer, checkpoints, metrics and log.\n"
      ".TP\n.I runs/.cache/\nTokenizers and tokenised corpora, kept by content; may be deleted at any "
      "time.\n";
  return out;
}

}  // namespace

void add_man_command(CLI::App& app) {
  add_command(app, "man", "Print the manual page", "calque man | man -l -")->callback([&app] {
    print(man_page(app));
  });
}

}  // namespace calque::cli
