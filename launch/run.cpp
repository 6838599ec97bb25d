#include "launch/run.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <memory>
#include <optional>
#include <random>
#include <sstream>
#include <string_view>

#include "launch/child.h"

namespace vckpt::launch {

namespace {

using Time = std::chrono::steady_clock::time_point;

constexpr std::chrono::seconds ready_wait{60};        // until a coordinator says its address
constexpr std::chrono::seconds terminate_wait{5};     // between SIGTERM and SIGKILL
constexpr std::chrono::milliseconds drain_wait{500};  // for output of a process that has ended
constexpr std::size_t line_bytes_max = 64 * 1024;     // longer lines are cut

Time now() { return std::chrono::steady_clock::now(); }
Time in_seconds(double seconds) {
  return now() + std::chrono::duration_cast<Time::duration>(std::chrono::duration<double>(seconds));
}

// Puts a name in front of every line.
class Lines {
 public:
  Lines(std::string prefix, std::ostream& out) : prefix_(std::move(prefix)), out_(&out) {}

  void add(std::string_view text) {
    while (!text.empty()) {
      const auto end = text.find('\n');
      line_ += text.substr(0, end);
      if (end == std::string_view::npos && line_.size() < line_bytes_max) return;
      flush();
      text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    }
  }
  void finish() {
    if (!line_.empty()) flush();
  }
  void redirect(std::ostream& out) { out_ = &out; }
  const std::optional<std::string>& first_line() const { return first_line_; }
  const std::string& last_line() const { return last_line_; }

 private:
  void flush() {
    if (!first_line_) first_line_ = line_;
    last_line_ = line_;
    *out_ << prefix_ << line_ << '\n' << std::flush;
    line_.clear();
  }

  std::string prefix_;
  std::ostream* out_;
  std::string line_;
  std::optional<std::string> first_line_;
  std::string last_line_;
};

struct Process {
  std::string name;
  std::unique_ptr<Child> child;
  Lines output;
  Lines errors;
  bool reported = false;  // its ending was handled

  bool running() const { return child != nullptr && !reported; }
};

// Reads what is there; false once the pipe has ended.
bool read_some(Descriptor& pipe, Lines& lines) {
  std::array<char, 65536> buffer;
  const auto count = uninterrupted([&] { return ::read(pipe.number(), buffer.data(), buffer.size()); });
  if (count > 0) {
    lines.add({buffer.data(), static_cast<std::size_t>(count)});
    return true;
  }
  if (count < 0 && errno == EAGAIN) return true;
  lines.finish();
  pipe.close();
  return false;
}

std::string beside_us(const std::string& program) {
  std::error_code error;
  const auto self = std::filesystem::read_symlink("/proc/self/exe", error);
  const auto beside = self.parent_path() / program;
  return !error && std::filesystem::exists(beside, error) ? beside.string() : program;
}

class Launch {
 public:
  Launch(const RunArguments& arguments, std::ostream& out, std::ostream& err)
      : arguments_(arguments), out_(out), err_(err) {
    std::random_device random;
    session_ = std::to_string(random()) + std::to_string(random());
  }

  Result<int> run() {
    VCKPT_TRY_VOID(watch_signals());
    if (arguments_.ranks > 1) {
      VCKPT_TRY_VOID(start_coordinator());
      if (stopped_by_) return 128 + *stopped_by_;
    }
    for (std::uint32_t rank = 0; rank < arguments_.ranks; ++rank) VCKPT_TRY_VOID(start_rank(rank));
    while (ranks_running()) {
      turn();
      if (stopped_by_ && !terminated_at_) terminate();
      if (grace_ends_ && now() >= *grace_ends_ && !terminated_at_) terminate();
      if (terminated_at_ && now() >= *terminated_at_ + terminate_wait) kill_all();
    }
    stop_coordinator();
    if (stopped_by_) return 128 + *stopped_by_;
    return first_failure_ ? first_failure_->code : 0;
  }

 private:
  Result<void> watch_signals() {
    sigset_t set;
    sigemptyset(&set);
    for (const auto number : {SIGTERM, SIGINT, SIGHUP}) sigaddset(&set, number);
    ::sigprocmask(SIG_BLOCK, &set, nullptr);
    ::signal(SIGPIPE, SIG_IGN);
    signals_ = Descriptor(::signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK));
    if (!signals_) return internal(std::string("signalfd: ") + std::strerror(errno));
    return {};
  }

  Result<void> start_coordinator() {
    ChildOptions options;
    options.program = {beside_us("vckpt-coordinator"),
                       "--root",
                       arguments_.root,
                       "--ranks",
                       std::to_string(arguments_.ranks),
                       "--deadline",
                       std::to_string(arguments_.deadline_s)};
    if (!arguments_.run.empty()) options.program.insert(options.program.end(), {"--run", arguments_.run});
    // A successor listens where the ranks call.
    constexpr std::string_view scheme = "tcp://";
    if (address_.starts_with(scheme))
      options.program.insert(options.program.end(), {"--bind", address_.substr(scheme.size())});
    VCKPT_TRY(auto child, Child::start(options));
    // Its first line is its address; what it logs is held back until then: one that cannot start is told in one line.
    std::ostringstream held_back;
    coordinator_ = {"coordinator", std::move(child), Lines("[coordinator] ", err_), Lines("[coordinator] ", held_back)};
    const auto until = now() + ready_wait;
    while (!coordinator_.output.first_line() && !stopped_by_) {
      if (coordinator_.reported) return not_started();
      if (now() >= until) {
        coordinator_.errors.redirect(err_);
        return unavailable("the coordinator was not ready within a minute");
      }
      turn();
    }
    coordinator_.errors.redirect(err_);
    err_ << held_back.str();
    if (coordinator_.output.first_line()) {
      const auto& line = *coordinator_.output.first_line();
      address_ = line.substr(0, line.find(' '));
    }
    return {};
  }

  // What a coordinator that ended at once said: `vckpt-coordinator: CODE: message`.
  Error not_started() const {
    constexpr std::string_view prefix = "vckpt-coordinator: ";
    const auto& line = coordinator_.errors.last_line();
    for (const auto code : {Code::invalid, Code::not_found, Code::corrupt, Code::unavailable, Code::exhausted,
                            Code::aborted, Code::internal}) {
      const auto begin = std::string(prefix) + std::string(to_string(code)) + ": ";
      if (line.starts_with(begin)) return {code, "the coordinator could not start: " + line.substr(begin.size())};
    }
    return unavailable("the coordinator could not start: it ended with " + coordinator_ending_ +
                       (line.empty() ? "" : ": " + line));
  }

  Result<void> start_rank(std::uint32_t rank) {
    const auto number = std::to_string(rank);
    const auto count = std::to_string(arguments_.ranks);
    ChildOptions options;
    options.program = arguments_.program;
    options.environment = {{"RANK", number},
                           {"WORLD_SIZE", count},
                           {"LOCAL_RANK", number},
                           {"LOCAL_WORLD_SIZE", count},
                           {"TORCHELASTIC_RUN_ID", session_},
                           {"TORCHELASTIC_RESTART_COUNT", "0"},
                           {"VCKPT_ROOT", arguments_.root}};
    if (!address_.empty()) options.environment.emplace_back("VCKPT_COORDINATOR", address_);
    if (!arguments_.run.empty()) options.environment.emplace_back("VCKPT_RUN", arguments_.run);
    VCKPT_TRY(auto child, Child::start(options));
    const auto prefix = "[" + number + "] ";
    ranks_.push_back({"rank " + number, std::move(child), Lines(prefix, out_), Lines(prefix, err_)});
    return {};
  }

  bool ranks_running() const {
    return std::any_of(ranks_.begin(), ranks_.end(), [](const Process& process) { return process.running(); });
  }

  // Waits for something to happen, shortly, and handles it.
  void turn() {
    constexpr int turn_ms = 100;
    std::vector<pollfd> polled = {{signals_.number(), POLLIN, 0}};
    const auto add = [&](Process& process) {
      if (!process.running()) return;
      polled.push_back({process.child->ended_descriptor(), POLLIN, 0});
      for (const auto* pipe : {&process.child->output(), &process.child->errors()}) {
        if (*pipe) polled.push_back({pipe->number(), POLLIN, 0});
      }
    };
    add(coordinator_);
    for (auto& process : ranks_) add(process);
    if (::poll(polled.data(), polled.size(), turn_ms) <= 0) return;
    if (polled[0].revents != 0) take_signal();
    if (coordinator_.running()) handle_coordinator();
    for (auto& process : ranks_) {
      if (process.running()) handle_rank(process);
    }
  }

  void take_signal() {
    signalfd_siginfo info{};
    if (::read(signals_.number(), &info, sizeof info) == sizeof info) stopped_by_ = static_cast<int>(info.ssi_signo);
  }

  static void read_output(Process& process) {
    if (process.child->output()) read_some(process.child->output(), process.output);
    if (process.child->errors()) read_some(process.child->errors(), process.errors);
  }

  // What a process wrote before its end is still in the pipes.
  static void drain(Process& process) {
    const auto until = now() + drain_wait;
    auto& child = *process.child;
    while ((child.output() || child.errors()) && now() < until) {
      std::vector<pollfd> polled;
      for (const auto* pipe : {&child.output(), &child.errors()}) {
        if (*pipe) polled.push_back({pipe->number(), POLLIN, 0});
      }
      ::poll(polled.data(), polled.size(), 10);
      read_output(process);
    }
    process.output.finish();
    process.errors.finish();
  }

  void handle_rank(Process& process) {
    read_output(process);
    const auto ending = process.child->poll_ending();
    if (!ending) return;
    drain(process);
    process.reported = true;
    if (ending->code == 0) return;
    if (!terminated_at_) err_ << "vckpt run: " << process.name << " ended with " << ending->text << '\n' << std::flush;
    if (first_failure_) return;
    first_failure_ = *ending;
    grace_ends_ = in_seconds(arguments_.grace_s > 0 ? arguments_.grace_s : arguments_.deadline_s + 5);
  }

  void handle_coordinator() {
    read_output(coordinator_);
    const auto ending = coordinator_.child->poll_ending();
    if (!ending) return;
    drain(coordinator_);
    coordinator_.reported = true;
    coordinator_ending_ = ending->text;
    if (ranks_.empty() || !ranks_running() || terminated_at_) return;
    err_ << "vckpt run: the coordinator ended with " << ending->text << '\n' << std::flush;
    if (!arguments_.restart_coordinator || restarts_ == coordinator_restarts_max) return;
    ++restarts_;
    if (const auto started = start_coordinator(); !started) {
      err_ << "vckpt run: " << started.error().message << '\n' << std::flush;
    }
  }

  void terminate() {
    terminated_at_ = now();
    for (auto& process : ranks_) {
      if (process.running()) process.child->signal(SIGTERM);
    }
  }

  void kill_all() {
    for (auto& process : ranks_) {
      if (process.running()) process.child->signal(SIGKILL);
    }
  }

  void stop_coordinator() {
    if (!coordinator_.running()) return;
    coordinator_.child->signal(SIGTERM);
    const auto until = now() + terminate_wait;
    while (coordinator_.running() && now() < until) turn();
    if (coordinator_.running()) coordinator_.child->signal(SIGKILL);
  }

  const RunArguments& arguments_;
  std::ostream& out_;
  std::ostream& err_;
  std::string session_;
  std::string address_;
  Descriptor signals_;
  Process coordinator_{"coordinator", nullptr, Lines("", err_), Lines("", err_)};
  std::string coordinator_ending_;
  int restarts_ = 0;
  std::vector<Process> ranks_;
  std::optional<int> stopped_by_;
  std::optional<Ending> first_failure_;
  std::optional<Time> grace_ends_;
  std::optional<Time> terminated_at_;
};

}  // namespace

Result<int> run(const RunArguments& arguments, std::ostream& out, std::ostream& err) {
  if (arguments.ranks == 0 || arguments.ranks > local_ranks_max) {
    return invalid(std::to_string(arguments.ranks) + " ranks; expected 1.." + std::to_string(local_ranks_max));
  }
  if (arguments.program.empty()) return invalid("no program; expected `-- PROGRAM ARGUMENTS`");
  if (arguments.root.empty()) return invalid("no root; expected --root ROOT");
  auto absolute = arguments;
  absolute.root = std::filesystem::absolute(arguments.root).string();
  return Launch(absolute, out, err).run();
}

}  // namespace vckpt::launch
