#include "launch/child.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>

namespace vckpt::launch {

namespace {

struct Pipe {
  Descriptor read;
  Descriptor write;
};

Result<Pipe> make_pipe(int read_flags) {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) return exhausted(std::string("pipe: ") + std::strerror(errno));
  Pipe pipe{Descriptor(ends[0]), Descriptor(ends[1])};
  if (read_flags != 0) ::fcntl(ends[0], F_SETFL, read_flags);
  return pipe;
}

// Between fork and exec: nothing that allocates or locks.
[[noreturn]] void become(char* const* program, char* const* environment, const Pipe& output, const Pipe& errors,
                         int report, pid_t parent) {
  ::setpgid(0, 0);
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(127);
  sigset_t none;
  sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  ::signal(SIGPIPE, SIG_DFL);
  const int nothing = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
  ::dup2(nothing, STDIN_FILENO);
  ::dup2(output.write.number(), STDOUT_FILENO);
  ::dup2(errors.write.number(), STDERR_FILENO);
  ::execvpe(program[0], program, environment);
  const int number = errno;
  [[maybe_unused]] const auto written = ::write(report, &number, sizeof number);
  ::_exit(127);
}

std::vector<std::string> merged(const std::vector<std::pair<std::string, std::string>>& added) {
  std::vector<std::string> environment;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string text = *entry;
    const auto name = text.substr(0, text.find('='));
    bool replaced = false;
    for (const auto& [key, value] : added) replaced = replaced || key == name;
    if (!replaced) environment.push_back(text);
  }
  for (const auto& [key, value] : added) environment.push_back(key + "=" + value);
  return environment;
}

std::vector<char*> pointers(std::vector<std::string>& texts) {
  std::vector<char*> all;
  for (auto& text : texts) all.push_back(text.data());
  all.push_back(nullptr);
  return all;
}

}  // namespace

Result<std::unique_ptr<Child>> Child::start(const ChildOptions& options) {
  VCKPT_ASSERT(!options.program.empty());
  VCKPT_TRY(auto output, make_pipe(O_NONBLOCK));
  VCKPT_TRY(auto errors, make_pipe(O_NONBLOCK));
  VCKPT_TRY(auto report, make_pipe(0));
  auto program = options.program;
  auto environment = merged(options.environment);
  const auto program_pointers = pointers(program);
  const auto environment_pointers = pointers(environment);
  const auto parent = ::getpid();
  const auto pid = ::fork();
  if (pid < 0) return exhausted("start " + program[0] + ": " + std::strerror(errno));
  if (pid == 0) {
    become(program_pointers.data(), environment_pointers.data(), output, errors, report.write.number(), parent);
  }
  report.write.close();
  output.write.close();
  errors.write.close();
  ::setpgid(pid, pid);  // the child does it too: whoever comes first

  std::unique_ptr<Child> child(new Child);
  child->pid_ = pid;
  child->output_ = std::move(output.read);
  child->errors_ = std::move(errors.read);
  child->pidfd_ = Descriptor(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
  if (!child->pidfd_) return internal(std::string("pidfd_open: ") + std::strerror(errno));
  int number = 0;
  const auto read = uninterrupted([&] { return ::read(report.read.number(), &number, sizeof number); });
  if (read == sizeof number) {
    const auto text = "program " + program[0] + ": " + std::strerror(number);
    return number == ENOENT ? not_found(text) : invalid(text);
  }
  return child;
}

Child::~Child() {
  if (pid_ < 0 || ending_) return;
  signal(SIGKILL);
  uninterrupted([this] { return ::waitpid(pid_, nullptr, 0); });
}

void Child::signal(int number) const {
  if (!ending_) ::kill(-pid_, number);
}

std::optional<Ending> Child::poll_ending() {
  if (ending_) return ending_;
  int status = 0;
  // The group dies before its leader is reaped: until then its number cannot be another's.
  siginfo_t info{};
  if (::waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WNOHANG | WNOWAIT) != 0 || info.si_pid != pid_) {
    return std::nullopt;
  }
  ::kill(-pid_, SIGKILL);
  if (uninterrupted([&] { return ::waitpid(pid_, &status, WNOHANG); }) != pid_) return std::nullopt;
  if (WIFSIGNALED(status)) {
    const auto number = WTERMSIG(status);
    ending_ = Ending{128 + number, "signal " + std::to_string(number) + " (" + ::strsignal(number) + ")"};
  } else {
    ending_ = Ending{WEXITSTATUS(status), "exit code " + std::to_string(WEXITSTATUS(status))};
  }
  return ending_;
}

}  // namespace vckpt::launch
