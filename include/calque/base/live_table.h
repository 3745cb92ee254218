// LiveTable: several lines on a terminal that are drawn again in place. Messages of the log push it down. It
// shows nothing in quiet mode and where stderr is not a terminal.
#pragma once

#include <string>
#include <vector>

namespace calque {

class LiveTable {
 public:
  LiveTable();
  ~LiveTable() { clear(); }
  LiveTable(const LiveTable&) = delete;
  LiveTable& operator=(const LiveTable&) = delete;

  bool visible() const { return visible_; }
  // Lines are cut to the terminal's width; those that do not fit its height are left out.
  void show(const std::vector<std::string>& lines);
  void clear();

 private:
  bool visible_;
  bool shown_ = false;
};

}  // namespace calque
