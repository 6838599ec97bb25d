// A process that we started: its end, its output, and an end to it and to all that it started.
#pragma once

#include <sys/types.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "runtime/descriptor.h"
#include "schema/result.h"

namespace vckpt::launch {

struct ChildOptions {
  std::vector<std::string> program;                              // and its arguments; found on PATH
  std::vector<std::pair<std::string, std::string>> environment;  // added to ours
};

// How a process ended, as a shell says it: its exit code, or 128 + signal.
struct Ending {
  int code = 0;
  std::string text;  // `exit code 3`, `signal 9 (Killed)`
};

// Threading: one thread. The process leads a group of its own and dies when the thread that started it does.
class Child {
 public:
  // not_found, invalid: the program cannot be run, naming it.
  static Result<std::unique_ptr<Child>> start(const ChildOptions& options);
  // Kills the group when it has not ended.
  ~Child();
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  int ended_descriptor() const { return pidfd_.number(); }  // readable once it has ended
  Descriptor& output() { return output_; }                  // non-blocking pipe of its stdout
  Descriptor& errors() { return errors_; }                  // and of its stderr
  pid_t pid() const { return pid_; }

  // To the whole group.
  void signal(int number) const;
  // Nothing while it runs. Once it has ended the rest of its group is killed.
  std::optional<Ending> poll_ending();

 private:
  Child() = default;

  pid_t pid_ = -1;
  Descriptor pidfd_;
  Descriptor output_;
  Descriptor errors_;
  std::optional<Ending> ending_;
};

}  // namespace vckpt::launch
