#include "calque/cli/translate_prompt.h"

#include <editline/readline.h>
#include <langinfo.h>
#include <sys/ioctl.h>
#include <termios.h>
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
#include "calque/base/unicode.h"
#include "calque/base/units.h"
#include "calque/cli/command.h"
#include "calque/decode/attention_map.h"
#include "calque/report/chart.h"
#include "calque/report/page.h"

namespace calque::cli {
namespace {

namespace fs = std::filesystem;

constexpr const char* help_text =
    "French in, English out. Commands:\n"
    "  :beam N            set the beam size (1: greedy search)\n"
    "  :nbest N           show the N best translations; 1 restores the beam\n"
    "  :sample [T]        sample translations at temperature T; again to stop\n"
    "  :set [KEY VALUE]   set any key of the decode section; alone, show them\n"
    "  :scores            show log-probabilities, or not\n"
    "  :attention         which French words each English word of the last translation attended to\n"
    "  :attention FILE    the same as an HTML page\n"
    "  :model RUN         translate with another model\n"
    "  :compare RUN       show another model's translations too; :compare alone stops\n"
    "  :save FILE         write the sentences and translations so far as TSV\n"
    "  :help              this list\n"
    "  :quit              leave (also ^D); ^C clears the line, or stops a translation\n";

constexpr size_t max_label = 20;

size_t columns() {
  winsize size{};
  return ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 20 ? size.ws_col : 80;
}

fs::path history_file() {
  if (const char* state = std::getenv("XDG_STATE_HOME")) return fs::path(state) / "calque" / "history";
  if (const char* home = std::getenv("HOME")) return fs::path(home) / ".local/state/calque/history";
  return {};
}

// Shades of blue on a 256-colour terminal.
std::string shaded(double share, const std::string& text) {
  static constexpr int shades[] = {-1, 17, 18, 19, 20, 26, 32, 38};
  const int shade = shades[std::min<size_t>(7, static_cast<size_t>(share * 10))];
  return shade < 0 ? text : fmt::format("\x1b[48;5;{}m\x1b[97m{}\x1b[0m", shade, text);
}

std::string padded_cell(const std::string& text, size_t width) {
  const std::string cut = shorten(text, width);
  return cut + std::string(width - display_width(cut), ' ');
}

// Breaks a text between words; lines after the first are indented.
std::string wrapped(const std::string& text, size_t width, size_t indent) {
  std::string out;
  size_t used = 0;
  std::istringstream words(text);
  for (std::string word; words >> word;) {
    const size_t length = display_width(word);
    if (used > 0 && used + 1 + length > width) {
      out += "\n" + std::string(indent, ' ');
      used = 0;
    } else if (used > 0) {
      out += " ";
      ++used;
    }
    out += word;
    used += length;
  }
  return out;
}

// While a line is edited ^C is a key, which clears the line, and not a signal.
bool line_was_cleared = false;

int clear_line(int, int) {
  line_was_cleared = true;
  rl_done = 1;
  return 0;
}

class InterruptAsKey {
 public:
  InterruptAsKey() {
    is_terminal_ = tcgetattr(STDIN_FILENO, &before_) == 0;
    if (!is_terminal_) return;
    termios changed = before_;
    changed.c_cc[VINTR] = _POSIX_VDISABLE;
    tcsetattr(STDIN_FILENO, TCSADRAIN, &changed);
  }
  ~InterruptAsKey() {
    if (is_terminal_) tcsetattr(STDIN_FILENO, TCSADRAIN, &before_);
  }
  InterruptAsKey(const InterruptAsKey&) = delete;
  InterruptAsKey& operator=(const InterruptAsKey&) = delete;

 private:
  termios before_{};
  bool is_terminal_ = false;
};

void draw_attention(const AttentionMap& map) {
  size_t label = 4;
  for (const std::string& word : map.target)
    label = std::max(label, std::min<size_t>(14, display_width(word)));
  std::vector<size_t> widths;
  for (const std::string& word : map.source) widths.push_back(std::clamp<size_t>(display_width(word), 4, 12));
  // As many French words side by side as fit the terminal, the rest below.
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
    beam_ = translator_->config().beam;
  }

  // False when it is time to leave.
  bool answer(const std::string& line) {
    const std::string text = clean_text(line);
    if (text.empty()) return true;
    std::istringstream words(text.substr(1));
    std::string command, argument;
    words >> command;
    std::getline(words >> std::ws, argument);
    const bool is_command = text.front() == ':';
    if (is_command && (command == "quit" || command == "q" || command == "exit")) return false;
    try {
      is_command ? run_command(command, argument) : translate(text);
    } catch (const UserError& error) {
      print(fmt::format("{}{}\n", error.what(), error.help().empty() ? "" : "\n  help: " + error.help()));
    } catch (const std::exception& error) {  // a prompt survives whatever fails
      const std::string what = error.what();
      print(fmt::format("failed: {}\n", what.substr(0, what.find("\nException raised from"))));
    }
    return true;
  }

 private:
  void set_model(const std::string& name) {
    const ModelSource source = find_model(runs_folder(), name);
    auto opened = open_model(source, options_);
    if (translator_) opened->config() = translator_->config();
    translator_ = std::move(opened);
    last_ = {};  // its tokens were another model's
    name_ = source.name;
    print(fmt::format("{}: {} parameters, beam {}\n", name_, format_count(parameter_count(*translator_)),
                      translator_->config().beam));
  }

  int64_t count_of(const std::string& argument, const char* what) const {
    const auto count = parse_count(argument);
    if (!count || *count < 1 || *count > 1000)
      throw UserError(fmt::format(":{} needs a number from 1 to 1000", what));
    return *count;
  }

  void run_command(const std::string& command, const std::string& argument) {
    DecodeConfig& config = translator_->config();
    if (command == "beam") {
      config.beam = beam_ = count_of(argument, "beam");
      config.nbest = std::min(config.nbest, config.beam);
      print(fmt::format("beam {}\n", config.beam));
    } else if (command == "nbest") {
      config.nbest = count_of(argument, "nbest");
      config.beam = std::max(beam_, config.nbest);
      print(fmt::format("{} best translations, beam {}\n", config.nbest, config.beam));
    } else if (command == "sample") {
      sample(config, argument);
    } else if (command == "set") {
      set(config, argument);
    } else if (command == "save") {
      save(argument);
    } else if (command == "scores") {
      scores_ = !scores_;
      print(scores_ ? "showing scores\n" : "hiding scores\n");
    } else if (command == "attention") {
      attention(argument);
    } else if (command == "model") {
      if (argument.empty()) throw UserError(":model needs a run or a checkpoint");
      set_model(argument);
    } else if (command == "compare") {
      if (argument.empty()) {
        other_.reset();
        print("no comparison\n");
      } else {
        const ModelSource source = find_model(runs_folder(), argument);
        other_ = open_model(source, options_);  // a comparison before it goes on if this fails
        other_name_ = source.name;
        print(fmt::format("comparing {} with {}\n", other_name_, name_));
      }
    } else if (command == "help" || command == "h" || command == "?") {
      print(help_text);
    } else {
      throw UserError(fmt::format(":{}: no such command{}", command,
                                  did_you_mean(command, {"beam", "nbest", "sample", "set", "save", "scores",
                                                         "attention", "model", "compare", "help", "quit"})),
                      ":help lists them");
    }
  }

  static void sample(DecodeConfig& config, const std::string& argument) {
    if (argument.empty()) {
      config.sample = !config.sample;
    } else {
      const auto temperature = parse_number(argument);
      if (!temperature || *temperature <= 0) throw UserError(":sample needs a temperature above 0");
      config.sample = true;
      config.temperature = *temperature;
    }
    print(config.sample ? fmt::format("sampling at temperature {:g}\n", config.temperature)
                        : fmt::format("searching with beam {}\n", config.beam));
  }

  static void set(DecodeConfig& config, const std::string& argument) {
    std::istringstream words(argument);
    std::string key, value;
    words >> key >> value;
    std::vector<std::string> known;
    DecodeConfig changed = config;
    for (const Field& field : fields(changed)) {
      known.push_back(field.name);
      const YAML::Node now = field.write({});
      if (key.empty())
        print(fmt::format("  {:<18} {}\n", field.name, now.IsNull() ? "" : now.as<std::string>()));
      if (field.name != key) continue;
      if (key == "shots")
        throw UserError("shots: examples are read when the prompt starts",
                        "calque translate MODEL --shots FILE");
      try {
        field.read(YAML::Node(value), {});
      } catch (const BadValue& error) {
        throw UserError(fmt::format("{}: {}", key, error.what()));
      }
      check_decode(changed);
      config = changed;
      print(fmt::format("{} {}\n", key, value));
      return;
    }
    if (!key.empty())
      throw UserError(fmt::format("{}: no such key{}", key, did_you_mean(key, known)), ":set lists them");
  }

  void save(const std::string& file) {
    if (file.empty()) throw UserError(":save needs a file");
    write_file(file, transcript_);
    print(fmt::format("{}: written\n", file));
  }

  void attention(const std::string& file) {
    if (last_.sources.empty()) throw UserError("nothing has been translated yet");
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
        "Rows are English words, columns French ones: the share of attention to each source word when the "
        "English word was predicted, averaged over all layers and heads.");
    const fs::path path = file.ends_with(".html") ? file : file + ".html";
    write_file(path, page.html());
    print(fmt::format("{}: written\n", path.string()));
  }

  void translate(const std::string& text) {
    if (translator_->config().sample) ++translator_->config().seed;  // a new sample each time
    last_ = run(*translator_, text, other_ ? name_ : "");
    transcript_ += text + "\t" + last_.text() + "\n";
    if (!other_ || was_stopped_) return;
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
      const size_t indent =
          (label.empty() ? 0 : label_width() + 1) + (translation.best.size() > 1 ? 4 : 0) + (scores_ ? 9 : 0);
      const size_t width = columns() > indent + 20 ? columns() - indent - 1 : 20;
      print(wrapped(one.text, width, indent) + (one.complete ? "" : " \x1b[2m(cut off)\x1b[0m") + "\n");
    }
    was_stopped_ = interrupt.requested();
    if (was_stopped_) print("(stopped)\n");
    return translation;
  }

  size_t label_width() const {
    return std::min(max_label, std::max(display_width(name_), display_width(other_name_)));
  }

  ModelOptions options_;
  std::string prefix_;
  std::unique_ptr<Translator> translator_, other_;
  std::string name_, other_name_;
  Translation last_;
  std::string transcript_;  // source<TAB>translation, since the start
  int64_t beam_ = 4;        // without :nbest
  bool scores_ = false;
  bool was_stopped_ = false;  // the last translation, by ^C
};

}  // namespace

void run_prompt(const std::string& model, const ModelOptions& options, const std::string& prefix) {
  // Line editing handles multi-byte characters only in a UTF-8 locale.
  if (std::setlocale(LC_CTYPE, "") == nullptr || std::string(nl_langinfo(CODESET)) != "UTF-8")
    std::setlocale(LC_CTYPE, "C.UTF-8");
  Session session(model, options, prefix);
  print("Type French; :help lists commands, ^D leaves.\n");
  const fs::path history = history_file();
  rl_initialize();
  using_history();
  stifle_history(1000);
  std::error_code ignored;  // a history that cannot be kept is not an error
  if (!history.empty()) {
    fs::create_directories(history.parent_path(), ignored);
    read_history(history.c_str());
  }
  rl_add_defun("clear-line", clear_line, 'C' & 0x1F);
  for (;;) {
    std::fflush(stdout);
    line_was_cleared = false;
    rl_done = 0;
    const std::unique_ptr<char, decltype(&std::free)> line(
        [] {
          const InterruptAsKey as_key;
          return readline("fr> ");
        }(),
        &std::free);
    if (line_was_cleared) {
      print("^C\n");
      continue;
    }
    if (!line) {
      print("\n");
      return;
    }
    if (*line) {
      add_history(line.get());
      // At once: a prompt may end by a signal.
      if (!history.empty()) write_history(history.c_str());
    }
    if (!session.answer(line.get())) return;
  }
}

}  // namespace calque::cli
