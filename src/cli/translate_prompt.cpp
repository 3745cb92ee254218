#include "calque/cli/translate_prompt.h"

#include <editline/readline.h>
#include <langinfo.h>
#include <sys/ioctl.h>
#include <unistd.h>
#include <clocale>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <sstream>

#include "calque/base/error.h"
#include "calque/base/file.h"
#include "calque/base/interrupt.h"
#include "calque/base/log.h"
#include "calque/base/text.h"
#include "calque/base/units.h"
#include "calque/cli/command.h"
#include "calque/decode/attention_map.h"
#include "calque/evaluate/chart.h"
#include "calque/evaluate/page.h"

namespace calque::cli {
namespace {

namespace fs = std::filesystem;

constexpr const char* help_text =
    "French in, English out. Commands:\n"
    "  :beam N            keep N translations while searching (1: greedy)\n"
    "  :nbest N           show the N best translations\n"
    "  :sample [T]        draw translations by chance, at temperature T; again to stop\n"
    "  :scores            show log-probabilities, or not\n"
    "  :attention         which French words each English word of the last translation looked at\n"
    "  :attention FILE    the same as a page, FILE.html\n"
    "  :model RUN         translate with another model\n"
    "  :compare RUN       show another model's translations beside; :compare alone stops\n"
    "  :help              this\n"
    "  :quit              leave (also ^D); ^C stops a translation\n";

size_t columns() {
  winsize size{};
  return ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 20 ? size.ws_col : 80;
}

fs::path history_file() {
  if (const char* state = std::getenv("XDG_STATE_HOME")) return fs::path(state) / "calque" / "history";
  if (const char* home = std::getenv("HOME")) return fs::path(home) / ".local/state/calque/history";
  return {};
}

// Shades of blue on a 256-colour terminal, from almost nothing to strong.
std::string shaded(double share, const std::string& text) {
  static constexpr int shades[] = {-1, 17, 18, 19, 20, 26, 32, 38};
  const int shade = shades[std::min<size_t>(7, static_cast<size_t>(share * 10))];
  return shade < 0 ? text : fmt::format("\x1b[48;5;{}m\x1b[97m{}\x1b[0m", shade, text);
}

std::string padded_cell(const std::string& text, size_t width) {
  const std::string cut = shorten(text, width);
  return cut + std::string(width - display_width(cut), ' ');
}

void draw_attention(const AttentionMap& map) {
  size_t label = 4;
  for (const std::string& word : map.target)
    label = std::max(label, std::min<size_t>(14, display_width(word)));
  std::vector<size_t> widths;
  for (const std::string& word : map.source) widths.push_back(std::clamp<size_t>(display_width(word), 4, 12));
  // As many French words side by side as the terminal holds, then the rest below.
  for (size_t begin = 0; begin < map.source.size();) {
    size_t end = begin, used = label;
    while (end < map.source.size() && (end == begin || used + widths[end] + 1 < columns()))
      used += widths[end++] + 1;
    std::string text = std::string(label, ' ');
    for (size_t s = begin; s < end; ++s) text += " " + padded_cell(map.source[s], widths[s]);
    text += "\n";
    for (size_t t = 0; t < map.target.size(); ++t) {
      text += padded_cell(map.target[t], label);
      for (size_t s = begin; s < end; ++s) {
        const double share = map.weights[t][s];
        const std::string cell = share >= 0.005 ? fmt::format("{:.0f} %", share * 100) : "";
        text += " " + shaded(share, padded_cell(cell, widths[s]));
      }
      text += "\n";
    }
    print(text);
    begin = end;
  }
}

class Session {
 public:
  Session(const std::string& model, const ModelOptions& options, std::string prefix)
      : options_(options), prefix_(std::move(prefix)) {
    set_model(model);
  }

  // False when it is time to leave.
  bool answer(const std::string& line) {
    const std::string text = Translator::clean(line);
    if (text.empty()) return true;
    if (text.front() != ':') {
      translate(text);
      return true;
    }
    std::istringstream words(text.substr(1));
    std::string command, argument;
    words >> command;
    std::getline(words >> std::ws, argument);
    if (command == "quit" || command == "q" || command == "exit") return false;
    try {
      obey(command, argument);
    } catch (const UserError& error) {
      print(fmt::format("{}{}\n", error.what(), error.help().empty() ? "" : "\n  help: " + error.help()));
    }
    return true;
  }

 private:
  void set_model(const std::string& name) {
    const ModelSource source = find_model(runs_folder(), name);
    auto opened = open_model(source, options_);
    if (translator_) opened->config() = translator_->config();
    translator_ = std::move(opened);
    name_ = source.name;
    print(fmt::format("{}: {} parameters, beam {}\n", name_, format_count(parameter_count(*translator_)),
                      translator_->config().beam));
  }

  int64_t count_of(const std::string& argument, const char* what) const {
    const auto count = parse_count(argument);
    if (!count || *count < 1 || *count > 1000)
      throw UserError(fmt::format(":{} wants a number from 1 to 1000", what));
    return *count;
  }

  void obey(const std::string& command, const std::string& argument) {
    DecodeConfig& config = translator_->config();
    if (command == "beam") {
      config.beam = count_of(argument, "beam");
      config.nbest = std::min(config.nbest, config.beam);
      print(fmt::format("beam {}\n", config.beam));
    } else if (command == "nbest") {
      config.nbest = count_of(argument, "nbest");
      config.beam = std::max(config.beam, config.nbest);
      print(fmt::format("the {} best, beam {}\n", config.nbest, config.beam));
    } else if (command == "sample") {
      sample(config, argument);
    } else if (command == "scores") {
      scores_ = !scores_;
      print(scores_ ? "scores are shown\n" : "scores are not shown\n");
    } else if (command == "attention") {
      attention(argument);
    } else if (command == "model") {
      if (argument.empty()) throw UserError(":model wants a run or a checkpoint");
      set_model(argument);
    } else if (command == "compare") {
      other_.reset();
      if (argument.empty()) {
        print("one model alone\n");
      } else {
        const ModelSource source = find_model(runs_folder(), argument);
        other_ = open_model(source, options_);
        other_name_ = source.name;
        print(fmt::format("{} beside {}\n", other_name_, name_));
      }
    } else if (command == "help" || command == "h" || command == "?") {
      print(help_text);
    } else {
      throw UserError(fmt::format(":{}: no such command{}", command,
                                  did_you_mean(command, {"beam", "nbest", "sample", "scores", "attention",
                                                         "model", "compare", "help", "quit"})),
                      ":help lists them");
    }
  }

  static void sample(DecodeConfig& config, const std::string& argument) {
    if (argument.empty()) {
      config.sample = !config.sample;
    } else {
      const auto temperature = parse_number(argument);
      if (!temperature || *temperature <= 0) throw UserError(":sample wants a temperature above 0");
      config.sample = true;
      config.temperature = *temperature;
    }
    print(config.sample ? fmt::format("sampling at temperature {:g}\n", config.temperature)
                        : fmt::format("searching with beam {}\n", config.beam));
  }

  void attention(const std::string& file) {
    if (last_.sources.empty()) throw UserError("nothing was translated yet");
    Page page("Attention: " + name_);
    std::string source_text;
    for (size_t part = 0; part < last_.sources.size() && part < last_.best.front().parts.size(); ++part) {
      const AttentionMap map = map_attention(
          translator_->decoder(), translator_->tokenizer(), translator_->format(),
          translator_->tokenizer().encode(last_.sources[part]), last_.best.front().parts[part].tokens);
      if (file.empty()) {
        draw_attention(map);
      } else {
        page.paragraph(last_.sources[part]);
        page.raw(heat_map({map.target, map.source, map.weights}));
      }
    }
    if (file.empty()) return;
    page.paragraph(
        "Each row is an English word, each column a French one: the share of its attention to the source, "
        "mean over "
        "all layers and heads, when the word was predicted.");
    const fs::path path = file.ends_with(".html") ? file : file + ".html";
    write_file(path, page.html());
    print(fmt::format("{}: written\n", path.string()));
  }

  void translate(const std::string& text) {
    if (translator_->config().sample) ++translator_->config().seed;  // another drawing each time
    last_ = run(*translator_, text, other_ ? name_ : "");
    if (!other_) return;
    other_->config() = translator_->config();
    run(*other_, text, other_name_);
  }

  Translation run(const Translator& translator, const std::string& text, const std::string& label) {
    const Interrupt interrupt;
    const std::string before =
        label.empty() ? "" : "\x1b[2m" + padded_cell(label, label_width()) + "\x1b[0m ";
    const size_t room = columns() - 1 - (label.empty() ? 0 : label_width() + 1);
    const Translation translation = translator.translate(text, prefix_, [&](const std::string& so_far) {
      print("\r\x1b[K" + before + shorten(so_far, room));
      std::fflush(stdout);
      return !interrupt.requested();
    });
    print("\r\x1b[K");
    for (size_t i = 0; i < translation.best.size(); ++i) {
      const TranslatedText& one = translation.best[i];
      print(before);
      if (translation.best.size() > 1) print(fmt::format("\x1b[2m{:>2}.\x1b[0m ", i + 1));
      if (scores_) print(fmt::format("\x1b[2m{:8.3f}\x1b[0m ", one.log_probability));
      print(one.text + (one.complete ? "" : " \x1b[2m(cut off)\x1b[0m") + "\n");
    }
    if (interrupt.requested()) print("(stopped)\n");
    return translation;
  }

  size_t label_width() const { return std::max(display_width(name_), display_width(other_name_)); }

  ModelOptions options_;
  std::string prefix_;
  std::unique_ptr<Translator> translator_, other_;
  std::string name_, other_name_;
  Translation last_;
  bool scores_ = false;
};

}  // namespace

void run_prompt(const std::string& model, const ModelOptions& options, const std::string& prefix) {
  // Line editing counts in characters only where the locale says what they are.
  if (std::setlocale(LC_CTYPE, "") == nullptr || std::string(nl_langinfo(CODESET)) != "UTF-8")
    std::setlocale(LC_CTYPE, "C.UTF-8");
  Session session(model, options, prefix);
  print("Type French; :help shows what else, ^D leaves.\n");
  const fs::path history = history_file();
  using_history();
  stifle_history(1000);
  if (!history.empty()) read_history(history.c_str());
  for (;;) {
    std::fflush(stdout);
    const std::unique_ptr<char, decltype(&std::free)> line(readline("fr> "), &std::free);
    if (!line) {
      print("\n");
      break;
    }
    if (*line) add_history(line.get());
    if (!session.answer(line.get())) break;
  }
  if (history.empty()) return;
  std::error_code ignored;  // no history is no reason to fail
  fs::create_directories(history.parent_path(), ignored);
  write_history(history.c_str());
}

}  // namespace calque::cli
